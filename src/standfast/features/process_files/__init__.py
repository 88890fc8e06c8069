"""Processes: state machines in YAML or JSON, with people, calls, waits and timeouts, for those who write no Python."""

from standfast.features.process_files.format import process_schema
from standfast.features.process_files.loading import load_processes

__all__ = ["load_processes", "process_schema"]
