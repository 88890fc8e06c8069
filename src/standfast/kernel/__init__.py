"""The rules of the engine as plain values and pure functions: one command, one decision, one commit.

Nothing in this package reads a clock, draws a random number or does I/O. `decider` is the contract, and `decision`
holds its answers. `program` makes a decider ready to run. `codec` converts values to bytes. `rows` declares kinds of
rows, and `row_kinds` holds the built-in ones.
"""
