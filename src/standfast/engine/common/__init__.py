"""Shared parts of the engine: clock, settings, handlers, telemetry, health and interceptors."""
