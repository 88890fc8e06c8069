"""Commit commands: queue, committer, batch, draft, cache, limits."""
