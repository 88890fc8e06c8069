"""Bodies of workflows: format, checks, patches."""
