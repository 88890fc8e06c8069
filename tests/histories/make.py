"""Makes the golden files that do not exist yet, and changes none: `PYTHONPATH=tests .venv/bin/python -m histories.make`."""

from __future__ import annotations

import sys

from histories.deciders import accounts
from histories.documents import (
    audited_documents,
    documents,
    moved_documents,
    reading_documents,
    redacted_documents,
    ruled_documents,
)
from histories.golden import FILES, Golden, text_of
from histories.own import OWN
from histories.processes import processes
from histories.sagas import SCENARIOS
from histories.tape import Tape


def main() -> None:
    """Play each scenario that has no file yet, and write its file."""
    lives = (documents, ruled_documents, redacted_documents, moved_documents, reading_documents, audited_documents)
    for scenario in (*SCENARIOS, *OWN, processes, accounts, *lives):
        path = FILES / f"{scenario.__name__}.json"
        if path.exists():
            continue
        tape = Tape()
        try:
            scenario(tape)
            made: Golden = tape.golden(scenario.__name__, scenario.__doc__ or "")
        finally:
            tape.close()
        path.write_bytes(text_of(made))
        sys.stdout.write(f"{path.name}: {sum(len(life.events) for life in made.lives)} events\n")


if __name__ == "__main__":
    main()
