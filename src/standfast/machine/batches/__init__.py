"""Batches: one thing done to many runs. Each batch is an instance of a decider of its own, which tells of every item what became of it."""
