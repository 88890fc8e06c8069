"""Compiled graphs: model, compiler, checks, index, definition."""
