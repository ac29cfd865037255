"""A first run: a small real task, learned from scratch in about a minute."""
