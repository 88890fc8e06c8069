"""`standfast doctor --invariants`: the rules that every document keeps, looked at stretch by stretch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from standfast.app.api.sync import Calls
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import complain, end
from standfast.cli.output import cell, print_json
from standfast.errors import ConflictError
from standfast.features.documents.invariants.views import InvariantPage, Mended, Violation

_STRETCH = 1000
"""Documents between two words about how far it is; where it was stopped, it goes on behind the last stretch that was finished."""
_REASON = "standfast doctor --invariants --repair"


def look(calls: Calls, *, rules: Sequence[str], repairs: bool, anew: bool, as_json: bool) -> None:
    """Look at all workflows and documents of a tenant, tell what breaks a rule, and set right what can be if that is wanted."""
    found = calls.invariants.workflows(rules=rules)
    for each in () if as_json else found:
        _tell(each)
    mended: list[Mended] = []
    checked = 0
    for page in _stretches(calls, rules, anew=anew):
        checked += page.checked
        found += page.items
        for each in () if as_json else page.items:
            _tell(each)
        if repairs:
            mended += _repaired(calls, page)
        complain(f"{checked} documents looked at, {len(found)} findings")
    left = _left(found, mended)
    if as_json:
        print_json({"is_well": not left, "checked": checked, "findings": found, "repaired": mended})
    else:
        for done in mended:
            click.echo(f"repaired {done.instance}: {_done(done)}")
        click.echo(f"{checked} documents keep all rules" if not found else f"{len(left)} findings are left")
    end(Exit.NO if left else Exit.DONE)


def _stretches(calls: Calls, rules: Sequence[str], *, anew: bool) -> Iterator[InvariantPage]:
    """All that is left of a patrol, or a whole one."""
    page = calls.invariants.patrol(limit=_STRETCH, rules=rules, anew=anew)
    yield page
    while page.next is not None:
        page = calls.invariants.patrol(limit=_STRETCH, rules=rules)
        yield page


def _repaired(calls: Calls, page: InvariantPage) -> Iterator[Mended]:
    """What was set right of the documents of a stretch."""
    for instance in dict.fromkeys(each.instance for each in page.items if each.is_repairable):
        if instance is None:
            continue
        try:
            yield calls.invariants.repair(instance, reason=_REASON)
        except ConflictError as error:
            complain(str(error), code=error.code)


def _left(found: Sequence[Violation], mended: Sequence[Mended]) -> list[Violation]:
    """What still breaks a rule."""
    settled = {done.instance for done in mended}
    return [*(each for each in found if each.instance not in settled), *(each for done in mended for each in done.left)]


def _done(mended: Mended) -> str:
    rows = f"rows of {', '.join(mended.tables)}" if mended.tables else ""
    calls = f"{len(mended.withdrawn)} calls withdrawn" if mended.withdrawn else ""
    again = f"steps {', '.join(map(str, mended.called))} called again" if mended.called else ""
    return "; ".join(filter(None, (rows, calls, again))) or "its status"


def _tell(found: Violation) -> None:
    where = f"{found.document} ({found.instance})" if found.document else found.definition
    click.echo(f"✗ {found.rule} {cell(where)}: {cell(found.told)}\n    → {found.remedy}")
