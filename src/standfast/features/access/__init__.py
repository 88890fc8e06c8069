"""API keys, sessions, denied requests, idempotency records."""
