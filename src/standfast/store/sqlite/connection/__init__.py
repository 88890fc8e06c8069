"""SQLite: connections and the conversion of rows."""
