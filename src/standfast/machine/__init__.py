"""The graph machine: one node, one outcome, one edge. A graph is compiled data; the machine is a decider that runs it.

`graphs` are the data: how they are made, judged, indexed and drawn. `runs` are what happens to one: commands in, events out, a state
folded from them, and a module for each kind of node. `machine` is the decider over both.
"""
