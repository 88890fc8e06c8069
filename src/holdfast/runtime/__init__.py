"""Running deciders: commits in groups, workers, timers, leases. It acts; it never asks what a decider means.

`committer` makes commits, `drafting` computes them, `worker` calls handlers, `fetching` and `clockwork` bring the work,
`heart` keeps the leases, `loops` keeps all of them going.
"""
