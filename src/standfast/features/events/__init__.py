"""Publish, route and list events."""
