"""Compile a contract and a body to a graph."""
