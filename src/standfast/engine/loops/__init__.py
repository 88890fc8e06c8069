"""Due work, projections, housekeeping, pause propagation."""
