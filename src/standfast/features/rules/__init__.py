"""Rules: a list of steps, written as JSON, that allow or block something, and wait for approvals and events in between."""

from standfast.features.rules.compiler import load_rules

__all__ = ["load_rules"]
