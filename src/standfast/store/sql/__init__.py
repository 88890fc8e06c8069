"""What both drivers share."""
