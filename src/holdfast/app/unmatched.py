"""Events that came for a step that waits, and that are none of those it waits for: without a word about them nobody finds a condition that never holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from holdfast.errors import ExpressionError
from holdfast.expressions import Expression
from holdfast.kernel.records import StoredSubscription
from holdfast.machine.graphs.graph import WaitEvents
from holdfast.machine.graphs.index import DATA, EVENT
from holdfast.machine.runs.published import Published
from holdfast.machine.runs.state import Data
from holdfast.store.reading import Reader

_MOST = 100
"""How many events are looked at for each condition; older ones come first."""

_decode = msgspec.json.Decoder(Published).decode


def unmatched(
    reader: Reader, op: WaitEvents, waits: Sequence[StoredSubscription], *, data: Data, now: datetime
) -> list[str]:
    """How many of the events that are kept do not fulfil a condition, in words, with what its last look failed on."""
    found = []
    for wait in waits:
        stored = op.events[wait.place].match
        if stored is None:
            continue
        condition, count, error = Expression.from_data(stored), 0, ""
        for each in reader.kept_for(wait.signal, wait.correlation or "", now=now, after=None, limit=_MOST):
            holds, why = _asked(condition, data, _decode(each.data).payload)
            count, error = count + (not holds), why or error
        if count:
            what = "1 event that is kept does" if count == 1 else f"{count} events that are kept do"
            found.append(f"{what} not match {condition.source}" + (f": {error}" if error else ""))
    return found


def _asked(condition: Expression, data: Data, payload: object) -> tuple[bool, str]:
    try:
        return condition.holds({DATA: data, EVENT: payload}), ""
    except ExpressionError as error:
        return False, str(error)
