"""Runs as they were: the state after an event of the history, folded anew from the stored snapshot or from the beginning."""

from __future__ import annotations

from datetime import datetime
from typing import cast

import msgspec

from standfast.calls.context import CallContext
from standfast.errors import NotFoundError, PayloadError, ReplayError
from standfast.features.runs.reads import begun, workflow_row
from standfast.graph.status_words.by_kind import words_of
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.machine.model.state import RunState
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import Address


class PastState(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it was after an event."""

    id: InstanceId
    at: int
    """Number of the event."""
    event: str
    """Name of the event."""
    happened_at: datetime
    status: str
    reason: str
    error: str
    """Why it waited for an operator, or why it had ended, if it had not ended well."""
    open: list[str]
    """Names of the steps that were under way."""
    ended: list[str]
    """Names of the steps that had ended, in that order; where nothing can be undone, only those that were still asked for."""
    data: dict[str, dict[str, object]]
    """The data of each token, by its name; of a document nothing: its versions tell that."""
    result: object
    """What it had come to; null if it had not ended well."""


def state_at(desk: CallContext, reader: TenantReader, run: InstanceId, at: int) -> PastState:
    """A run as it was after the event with this sequence."""
    header = workflow_row(reader, run)
    if not 1 <= at <= header.version:
        raise NotFoundError("event of a history", at, hint=f"the history of {run} has the events 1 to {header.version}")
    program = desk.registry.get(header.tenant, header.definition, header.definition_version)
    (event,) = reader.events(header.id, after=at - 1, limit=1)
    state = cast("RunState", _folded(reader, program, desk.address(instance=run), at))
    status = program.status(state)
    has_begun = bool(begun(reader, [header])) if at == header.version else header.begun and _had_begun(state)
    # What a document held is told by its versions, each field to those whose eyes it is for.
    tokens = {**state.tokens, **state.parked} if state.document is None else {}
    return PastState(
        id=run,
        at=at,
        event=event.type,
        happened_at=event.at,
        status=words_of(header.kind).instance_status(status.word, status.reason, has_begun=has_begun),
        reason=status.reason,
        error=state.error,
        open=[each.node for each in state.open.values()],
        ended=[each.node for each in state.executed.values()],
        data={name: token.data for name, token in tokens.items()},
        result=state.result if state.document is None else None,
    )


def _had_begun(state: RunState) -> bool:
    """Whether anybody had worked on it, or it waited: a call that nobody had taken yet is no work."""
    is_waiting = any(each.effect is None for each in state.open.values())
    return bool(is_waiting or state.executed or state.dead or state.frozen or state.is_terminal)


def _folded(reader: TenantReader, program: Program, address: Address, at: int) -> object:
    """The state after an event. The newest snapshot is the only one that is kept: what is older is folded from the beginning."""
    loaded = reader.load(address)
    assert loaded is not None, "its row was read"
    run, kept = loaded.header.id, loaded.snapshot
    if kept is not None and kept.version <= at and program.takes_snapshot(kept.state_version, kept.fingerprint):
        try:
            later = reader.events(run, after=kept.version, limit=at - kept.version) if at > kept.version else []
            return program.replay(program.restore(kept.data), later)
        except (PayloadError, ReplayError):
            pass  # It cannot be read, or the events do not fit on it: the events alone tell.
    return program.replay(program.initial(), reader.events(run, limit=at))
