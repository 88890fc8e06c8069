"""Publish, compare and dry-run definitions."""
