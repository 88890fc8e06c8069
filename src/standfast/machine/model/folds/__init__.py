"""How events change the state of a run."""
