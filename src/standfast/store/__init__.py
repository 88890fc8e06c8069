"""Where everything is kept. `port` says what the engine asks, `shapes` what crosses the line; `sqlite` and `postgres` answer.

Only `opening` names the drivers.
"""
