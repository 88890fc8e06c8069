"""Run deciders: dispatcher, listeners, worker process."""
