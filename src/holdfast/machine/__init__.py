"""The graph machine: one node, one outcome, one edge. A graph is compiled data; the machine is a decider that runs it.

`graph` is the data, `compiling` makes it, `checks` and `flow` judge it, `drawing` shows it. `machine` is the decider: `commands` in, `events` out, `evolving` folds
them into `state`, `deciding` is a table from command to function. A module in `nodes` answers for one kind of node.
"""
