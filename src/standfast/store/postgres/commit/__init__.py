"""Postgres: write a commit, claim work."""
