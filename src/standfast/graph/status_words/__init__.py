"""Status names by kind of workflow."""
