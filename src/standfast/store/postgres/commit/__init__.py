"""Postgres: writes commits and claims work."""
