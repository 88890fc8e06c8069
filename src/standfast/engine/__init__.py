"""The engine: accepts commands, commits them and runs their effects, timers and messages."""
