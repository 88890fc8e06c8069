"""Pause runs and definitions."""
