"""SQLite: writes commits and claims work."""
