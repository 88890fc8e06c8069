"""How effects are done: claims, calls of handlers, their ends and failures."""
