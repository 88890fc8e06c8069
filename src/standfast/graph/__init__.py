"""Compiled graphs: model, compiler, checks, index and definitions."""
