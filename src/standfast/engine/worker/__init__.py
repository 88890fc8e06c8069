"""Claim effects, call handlers, heartbeat, failures."""
