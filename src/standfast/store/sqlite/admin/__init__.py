"""SQLite: maintenance and operator statements."""
