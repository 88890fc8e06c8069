"""Pure questions about the state of a run."""
