"""SQLite: what decisions read and a commit checks: access, people, settings."""
