"""Engines: ids to ids, a model and a search under one call."""
