"""Processes: state machines in YAML or JSON, with people, calls, waits and timeouts, for those who write no Python."""

from standfast.features.process_files.loading import load_processes
from standfast.features.process_files.schema import process_schema

__all__ = ["load_processes", "process_schema"]
