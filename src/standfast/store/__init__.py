"""Persistence. `ports` holds the protocols that the engine uses, and `records` the values that cross them. `sqlite` and `postgres` implement the ports.

Only `opening` names the drivers.
"""
