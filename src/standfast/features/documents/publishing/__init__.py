"""Contracts and bodies from draft to active version."""
