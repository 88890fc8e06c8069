"""Status names per kind of workflow."""
