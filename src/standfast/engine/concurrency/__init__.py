"""Threads, loops and replies."""
