"""Build decisions: routing, failures, rollback, slots."""
