"""Integrations: web frameworks, traces, error trackers and logs. They are imported only by programs that use them."""
