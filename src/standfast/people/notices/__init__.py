"""How notices reach people: a module for each channel."""
