"""What an engine knows: definitions, settings of organisations, rate limits."""
