"""SQLite: connections, sessions and records."""
