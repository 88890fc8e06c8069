"""Postgres: reads instances, tasks and documents."""
