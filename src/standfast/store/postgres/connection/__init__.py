"""Postgres: connections, pipelines, and the conversion of rows."""
