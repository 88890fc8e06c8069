"""`standfast doctor --after-restore`: what receivers have seen, held against what a restored database knows."""

from __future__ import annotations

from collections import Counter

import click

from standfast.app.api.sync import Calls
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end
from standfast.cli.output import cell, print_json
from standfast.errors import ConfigurationError
from standfast.features.operations.restore import MOST_KEYS, SentEffect


def compare(calls: Calls, received: str, *, as_json: bool) -> None:
    """Tell what was sent after the restore point, by the keys in a file; exit code 1 if anything was."""
    try:
        with click.open_file(received, encoding="utf-8") as lines:
            keys = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{received} cannot be read: {error}") from None
    found: list[SentEffect] = []
    for start in range(0, len(keys), MOST_KEYS):
        found += calls.instances.sent(keys[start : start + MOST_KEYS])
    later = [each for each in found if each.state in {"again", "lost"}]
    if as_json:
        print_json({"is_well": not later, "counts": Counter(each.state for each in found), "findings": later})
    else:
        for each in later:
            where = " ".join(filter(None, (each.definition, each.business_key, each.step)))
            click.echo(f"✗ {cell(each.key)} {each.state} {cell(where)}\n    → {each.told}")
        counts = Counter(each.state for each in found)
        click.echo(", ".join(f"{counts[state]} {state}" for state in ("known", "again", "lost", "unknown")))
    end(Exit.NO if later else Exit.DONE)
