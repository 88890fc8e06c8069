"""Processes: state machines in YAML or JSON, with people, calls, waits and timeouts, for those who write no Python."""
