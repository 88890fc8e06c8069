"""After a restore: what receivers have seen of us, by idempotency keys, held against what the database knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from standfast.calls.context import CallContext
from standfast.errors import PayloadError
from standfast.graph.model import KINDS
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import STEPS, StoredStep
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader

MOST_KEYS: Final = 10_000
_BATCH: Final = 200
_KEY: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):(\d{1,9})(!?)")
_OPEN: Final = frozenset({"pending", "running"})

State = Literal["known", "again", "lost", "unknown"]
"""`known`: it is in the history. `again`: it is not done here, and will be sent again with the same key. `lost`: what asked for it is not in
this database any more. `unknown`: this is no key of an effect."""


class SentEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What the database knows of an effect that a receiver has seen."""

    key: str
    """Its idempotency key, as the receiver has it."""
    state: State
    instance: InstanceId | None
    """The instance that it was of, if the key names one."""
    definition: str
    business_key: str
    step: str
    """Name of the step, if it was one's."""
    told: str


class _Key(NamedTuple):
    text: str
    instance: InstanceId
    number: int
    is_undoing: bool


def sent(desk: CallContext, keys: Sequence[str]) -> list[SentEffect]:
    """What became of effects that receivers have seen, in the order of the keys."""
    if not _are_keys(keys):
        raise PayloadError("keys are a list of idempotency keys, as receivers have kept them")
    if len(keys) > MOST_KEYS:
        raise PayloadError(f"{len(keys)} keys are more than {MOST_KEYS} at once; ask for them part by part")
    found: dict[str, SentEffect] = {}
    read = [each for each in map(_read, dict.fromkeys(keys)) if each is not None]
    for start in range(0, len(read), _BATCH):
        part = read[start : start + _BATCH]
        with desk.reader.look() as reader:
            found |= _judged(reader, part)
    return [found.get(each) or _told(each, "unknown", "this is no key of an effect of this engine") for each in keys]


def _are_keys(given: object) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(each, str) for each in given)


def _read(key: str) -> _Key | None:
    match = _KEY.fullmatch(key)
    return None if match is None else _Key(key, InstanceId(UUID(match[1])), int(match[2]), bool(match[3]))


def _judged(reader: TenantReader, keys: Sequence[_Key]) -> dict[str, SentEffect]:
    names = list({each.instance for each in keys})
    headers = {each.id: each for each in reader.headers(names)}
    live = {(each.instance, each.number) for each in reader.effects_of(names)}
    steps = {(each.instance, each.number): each for each in reader.rows_of(STEPS, names)}
    undoing = {(each.instance, each.compensates): each for each in steps.values() if each.compensates is not None}
    made = {}
    for key in keys:
        header, place = headers.get(key.instance), (key.instance, key.number)
        if header is None:
            told = "its instance is not here: it began after the restore point, or was deleted; undo it by hand, or start it again"
            made[key.text] = _told(key.text, "lost", told, instance=key.instance)
        elif header.kind in KINDS:
            made[key.text] = _of_step(key, header, (undoing if key.is_undoing else steps).get(place))
        else:
            made[key.text] = _of_effect(key, header, is_live=place in live)
    return made


def _of_step(key: _Key, header: InstanceHeader, step: StoredStep | None) -> SentEffect:
    if step is None:
        told = "the run was not there yet at the restore point: when it comes there again it sends this key again, maybe with other content"
        return _told(key.text, "lost", told, header=header)
    if step.status in _OPEN:
        told = "it will be sent again; a receiver that knows the key ignores it, else complete the step by hand before a worker starts"
        return _told(key.text, "again", told, header=header, step=step.node)
    return _told(key.text, "known", f"the step is {step.status}", header=header, step=step.node)


def _of_effect(key: _Key, header: InstanceHeader, *, is_live: bool) -> SentEffect:
    if key.number >= header.issued:
        told = "it was asked for after the restore point: another effect may be sent with this key"
        return _told(key.text, "lost", told, header=header)
    if is_live:
        return _told(
            key.text, "again", "it will be sent again; a receiver that knows the key ignores it", header=header
        )
    return _told(key.text, "known", "it is done", header=header)


def _told(
    key: str,
    state: State,
    told: str,
    *,
    instance: InstanceId | None = None,
    header: InstanceHeader | None = None,
    step: str = "",
) -> SentEffect:
    return SentEffect(
        key=key,
        state=state,
        instance=instance if header is None else header.id,
        definition="" if header is None else header.definition,
        business_key="" if header is None else header.key or "",
        step=step,
        told=told,
    )
