"""Calls to a server."""
