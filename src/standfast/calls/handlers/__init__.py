"""Registration of handlers, step handlers, built-in handlers."""
