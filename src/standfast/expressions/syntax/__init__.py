"""The syntaxes of expressions."""
