"""The rows that follow from the events of a run."""
