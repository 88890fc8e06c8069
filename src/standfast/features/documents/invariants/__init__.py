"""Check and repair stored documents."""
