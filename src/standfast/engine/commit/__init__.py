"""Commits of commands: queue, committer, batch, draft, cache and limits."""
