"""Contracts: format, checks, library."""
