"""The decider of schedules."""
