"""One run of a graph: commands, events, state, and what each kind of node does."""
