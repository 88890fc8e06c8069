"""SQLite: write a commit, claim work."""
