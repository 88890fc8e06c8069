"""Running deciders: commits in groups, workers, timers, leases. It acts; it never asks what a decider means.

`service` is the command side of an engine and `workplace` its working side. `commit` makes commits, `work` calls handlers and
keeps the leases, `loops` bring what is due; `loop` keeps all of them going.
"""
