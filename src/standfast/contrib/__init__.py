"""Standfast in other people's programs: frameworks, traces, error trackers, logs. Nothing here is imported unless a program asks for it."""
