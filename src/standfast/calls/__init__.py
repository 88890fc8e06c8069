"""What the calls of all features share: request context, pools, waiters, references."""
