"""Postgres: facts that decisions read and commits check (access, people, settings)."""
