"""Code shared by both drivers."""
