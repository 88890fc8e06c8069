"""Background loops: due work, projections, housekeeping, resuming and pause propagation."""
