"""The tree, types, limits and error codes of expressions."""
