"""The SQLite driver: one file, one writing connection, no server.

A process that can read the file can read every tenant.
"""
