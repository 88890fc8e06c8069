"""Loops, threads, replies."""
