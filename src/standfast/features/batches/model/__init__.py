"""The decider of batches."""
