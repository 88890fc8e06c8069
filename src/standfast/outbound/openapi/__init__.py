"""Calls of operations that an OpenAPI document describes."""
