"""A Postgres server that comes and goes with a process: for the tests and the benchmark of this repository, not for users.

It is no part of the product and not in the wheel. `postgres` is the server, `programs` finds the programs and runs them
under an account that Postgres accepts, `folders` keeps the data, `lifeline` ties a program to its parent.
"""
