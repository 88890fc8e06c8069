"""The spellings of expressions."""
