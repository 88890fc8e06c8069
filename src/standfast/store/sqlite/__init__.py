"""The SQLite driver: one file, one writing connection, no server. Whoever can read the file can read every tenant."""
