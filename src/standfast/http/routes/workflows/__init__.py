"""Routes of workflows."""
