"""The worker: claims effects, calls handlers, sends heartbeats and handles failures."""
