"""What runs on and on: loops, and what they look after."""
