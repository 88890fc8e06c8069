"""Postgres: read instances, tasks and documents."""
