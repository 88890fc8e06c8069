"""Events and signals that came, and that are none of those a step waits for: without a word about them nobody finds a condition that never holds, or a name that was misspelt."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from standfast.errors import ExpressionError
from standfast.expressions import Expression
from standfast.graph.index import DATA, EVENT
from standfast.graph.model import Graph, WaitEventOp, WaitEventsOp
from standfast.kernel.row_kinds.steps import StoredSubscription
from standfast.machine.model.messages import PublishedMessage
from standfast.machine.model.state import Data
from standfast.store.ports.reading import TenantReader

_MOST = 100
"""How many events are looked at for each condition; older ones come first."""

_decode = msgspec.json.Decoder(PublishedMessage).decode


def unmatched(
    reader: TenantReader, op: WaitEventsOp, waits: Sequence[StoredSubscription], *, data: Data, now: datetime
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


def unawaited(graph: Graph, signals: Collection[str]) -> str:
    """The signals that are kept for a run although no step of its workflow ever waits for them, in words."""
    awaited = {node.op.signal for node in graph.nodes.values() if isinstance(node.op, WaitEventOp)}
    names = ", ".join(repr(each) for each in signals if each not in awaited)
    return f"; it was told {names}, for which no step of it waits" if names else ""


def _asked(condition: Expression, data: Data, payload: object) -> tuple[bool, str]:
    try:
        return condition.holds({DATA: data, EVENT: payload}), ""
    except ExpressionError as error:
        return False, str(error)
