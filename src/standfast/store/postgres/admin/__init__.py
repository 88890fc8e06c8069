"""Postgres: maintenance and operator statements."""
