"""SQLite: read instances, tasks and documents."""
