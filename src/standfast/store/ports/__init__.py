"""The protocols of stores, by subject."""
