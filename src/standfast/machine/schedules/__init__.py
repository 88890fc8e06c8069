"""Schedules: what starts workflows at given times. Each one is an instance of a decider of its own, so that the kernel does the hard part."""
