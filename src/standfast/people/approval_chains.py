"""Approval chains: templates of stages that are asked one after the other, published in versions that never change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from standfast.errors import brief
from standfast.graph.values.approver_rules import HEAVIEST, Ask, Stage
from standfast.graph.values.value_checks import name_findings
from standfast.kernel.codec.type_cache import settled
from standfast.machine.model.task_state import stage_label
from standfast.people.rejections import PeopleRefusal, refused
from standfast.store.ports.versioned_settings import Edition

T = TypeVar("T")

_SHORT = ("user", "role", "manager")
"""What an ask may be written with in short: `{"role": "finance"}`."""


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """One version of an approval chain."""

    name: str
    version: int
    """Counted from 1. Questions that were begun with it keep it, whatever is published later."""
    stages: list[Stage]
    """They are asked one after the other, each once the one before has agreed."""
    description: str = ""
    published_by: str = ""
    published_at: datetime


def chain_of(stored: Edition) -> Chain:
    """A chain as it is in the database."""
    return Chain(
        name=stored.name,
        version=stored.version,
        stages=msgspec.json.decode(stored.content, type=settled(list[Stage])),
        description=stored.note,
        published_by=stored.published_by,
        published_at=stored.published_at,
    )


def stage_bytes(stages: Sequence[Stage]) -> bytes:
    """Stages as they are stored: the same for the same."""
    return msgspec.json.encode(stages)


def checked_stages(given: object) -> list[Stage]:
    """Stages as callers give them: as such, or as plain data. RejectedError if no question could be made of them."""
    if not isinstance(given, list | tuple) or not given:
        raise refused(PeopleRefusal.EMPTY_CHAIN, "a chain without stages would ask nobody; give at least one stage")
    stages = [_stage(each, number) for number, each in enumerate(given, 1)]
    met: dict[str, int] = {}
    for number in range(1, len(stages) + 1):  # A decision names the stage that it is for.
        label = stage_label(stages, number)
        first = met.setdefault(label, number)
        if first != number:
            told = f"stage {number} is called {label!r}, as stage {first} is; give each stage a name of its own"
            raise refused(PeopleRefusal.BAD_STAGE, told)
    return stages


def _stage(given: object, number: int) -> Stage:
    where = f"stage {number}"
    if isinstance(given, Stage):  # What it holds need not be what its annotations say.
        given = {name: getattr(given, name) for name in given.__struct_fields__}
    if isinstance(given, Mapping):
        given = _converted({**given, **_agreement(given), "asks": [*_asks(given.get("asks", ()))]}, Stage, where)
    if not isinstance(given, Stage):
        raise refused(PeopleRefusal.BAD_STAGE, f"{where} is {given!r}; give a Stage, or a mapping with `asks`")
    if not given.asks:
        raise refused(PeopleRefusal.EMPTY_STAGE, f"{where} asks nobody; give it at least one ask")
    for fault in _faults(given):
        raise refused(PeopleRefusal.BAD_STAGE, f"{where} {fault}")
    return given


def _faults(stage: Stage) -> Iterator[str]:
    for what, name in [("its name", stage.name), *(("whom it asks", ask.of) for ask in stage.asks)]:
        yield from (f"cannot be: {each.message}" for each in name_findings("", "", what, name) if name)
    for ask in stage.asks:
        yield from _ask_faults(ask)
    if stage.agree in {"n", "weight"} and stage.least < 1:
        yield f"agrees by {stage.agree!r} without saying how much that takes; give `least`"
    if stage.agree in {"any", "all"} and stage.least:
        yield f"needs {stage.least}, which {stage.agree!r} has no use for; agree by a number, or by 'weight'"
    if all(ask.is_direct for ask in stage.asks):
        most = sum(ask.weight if stage.agree == "weight" else 1 for ask in stage.asks)
        if stage.least > most:
            yield f"needs {stage.least}, and those whom it asks come to {most}; ask more, or each of a role by `pick` 'all'"


def _ask_faults(ask: Ask) -> Iterator[str]:
    if not ask.by:
        yield "has an ask without a resolver; say by which one, such as `role`"
    if ask.by in {"chain", "rule"}:
        yield f"asks by {ask.by!r}, which a stage cannot; name users, roles, managers, or resolvers of the application"
    if ask.by in {"user", "role"} and not ask.of:
        yield f"asks by {ask.by!r} without saying which; give `of`"
    if not 1 <= ask.weight <= HEAVIEST:
        yield f"has an ask with a weight of {brief(ask.weight)}; it must be from 1 to {HEAVIEST}"


def _agreement(given: Mapping[object, object]) -> dict[object, object]:
    """What has to be agreed, where that is said as steps of sagas say it: by a number."""
    agree = given.get("agree")
    is_number = isinstance(agree, int) and not isinstance(agree, bool)
    return {"agree": "n", "least": agree} if is_number and not given.get("least") else {}


def _asks(given: object) -> Iterator[object]:
    """Asks as callers write them in short: `"role:finance"`, `"ann"`, `"manager"`, or `{"role": "finance"}`."""
    for each in given if isinstance(given, list | tuple) else (given,):
        if isinstance(each, str):
            kind, colon, of = each.partition(":")
            by = kind if colon else each if each == "manager" else "user"
            yield {"by": by, "of": of if colon else "" if by == "manager" else each}
        elif (
            isinstance(each, Mapping) and "by" not in each and len(short := [key for key in _SHORT if key in each]) == 1
        ):
            rest = {key: value for key, value in each.items() if key != short[0]}
            yield {"by": short[0], "of": each[short[0]], **rest}
        else:
            yield each


def _converted(given: Mapping[object, object], kind: type[T], where: str) -> T:
    plain = {key: _plain_asks(value) if key == "asks" else value for key, value in given.items()}
    unknown = sorted(str(key) for key in plain if key not in kind.__struct_fields__)  # type: ignore[attr-defined]
    if unknown:
        known = ", ".join(kind.__struct_fields__)  # type: ignore[attr-defined]
        raise refused(PeopleRefusal.BAD_STAGE, f"{where} has no {', '.join(map(repr, unknown))}; there are {known}")
    try:
        return msgspec.convert(plain, settled(kind))
    except msgspec.ValidationError as error:
        raise refused(PeopleRefusal.BAD_STAGE, f"{where} cannot be read: {error}") from error


def _plain_asks(given: object) -> object:
    return (
        [msgspec.to_builtins(each) if isinstance(each, Ask) else each for each in given]
        if isinstance(given, list)
        else given
    )
