"""How the engine reaches other systems: which addresses it may, how it asks over HTTP, and who makes the calls of steps."""
