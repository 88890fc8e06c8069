"""Authenticate, tokens, login, rate limits, audit."""
