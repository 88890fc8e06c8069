"""The law of the engine as plain values and pure functions: one command, one decision, one commit.

Nothing in this package reads a clock, draws a random number or does I/O. `decider` is the contract, `decision` what it answers,
`program` a decider made ready to run, `wire` and `vocabulary` the way of values to bytes, `rows` how kinds of rows are declared, `records` those that the engine brings along.
"""
