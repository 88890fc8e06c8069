"""Postgres: connections, sessions and records."""
