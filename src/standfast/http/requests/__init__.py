"""Routing, endpoint, streaming, ETags, idempotency."""
