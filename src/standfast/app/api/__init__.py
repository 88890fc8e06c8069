"""The API of the engine: sync and async, generated."""
