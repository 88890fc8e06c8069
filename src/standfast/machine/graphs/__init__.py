"""Graphs as data: their parts, the checks, the index that runs use, their pictures."""
