"""`python -m standfast.cli` is `standfast`."""

from standfast.cli import main

main(prog_name="standfast")
