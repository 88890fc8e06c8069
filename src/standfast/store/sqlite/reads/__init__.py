"""SQLite: reads instances, tasks and documents."""
