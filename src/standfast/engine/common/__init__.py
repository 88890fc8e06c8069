"""Clock, settings, handlers, telemetry, health, interceptors."""
