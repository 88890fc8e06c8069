"""How commands become commits: queues, batches, drafts, and what is remembered of instances."""
