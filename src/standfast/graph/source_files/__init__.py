"""YAML and JSON with positions and limits."""
