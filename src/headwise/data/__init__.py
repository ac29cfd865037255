"""Parallel text: read line for line, checked."""
