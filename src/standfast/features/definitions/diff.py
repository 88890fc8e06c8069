"""How two versions of a workflow differ: steps and ways that are new, gone or changed, and what else the whole says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Literal, cast

import msgspec

from standfast.graph.compiler import graph_data
from standfast.graph.model import Graph
from standfast.kernel.durations import duration_text

_WORDS = {"step": {}, "transition": {"when": "condition", "capability": "guard"}, "workflow": {}}
"""What files of processes call a part that graphs call otherwise."""
_MS = "_ms"
_FOLLOWS = "op.times.due_ms"
"""Follows from the timeout of a step, in processes."""
_WHOLE = ("kind", "entry", "policies", "rights", "triggers")


class DefinitionChange(msgspec.Struct, frozen=True, kw_only=True):
    """One difference."""

    what: Literal["step", "transition", "workflow"]
    name: str
    """The step, the transition, or the part of the whole."""
    change: Literal["added", "removed", "changed"]
    field: str = ""
    """Which part of it is another one now, as a path."""
    before: object = None
    after: object = None

    def __str__(self) -> str:
        sign = {"added": "+", "removed": "-", "changed": "~"}[self.change]
        told = f"{sign} {self.what} {self.name}"
        if not self.field:
            return told
        return f"{told}: {self.field}: {_shown(self.before)} → {_shown(self.after)}"


def compared(before: Graph, after: Graph) -> list[DefinitionChange]:
    """What is another in the second than in the first: the whole, then steps, then transitions, each by name."""
    old, new = graph_data(before), graph_data(after)
    whole = {name: old.get(name) for name in _WHOLE}, {name: new.get(name) for name in _WHOLE}
    changes = [
        DefinitionChange(what="workflow", name=path.split(".")[0], change="changed", field=path, before=was, after=now)
        for path, was, now in _fields(*whole)
    ]
    nodes = (cast("dict[str, object]", each["nodes"]) for each in (old, new))
    changes += _parts("step", *nodes)
    changes += _parts("transition", _edges(before), _edges(after))
    return [_in_words(each) for each in changes if each.field != _FOLLOWS] if after.kind == "process" else changes


def compared_words(before: Mapping[str, str], after: Mapping[str, str]) -> list[DefinitionChange]:
    """What is said otherwise of the whole, for people: it is no part of what runs."""
    return [
        DefinitionChange(
            what="workflow", name=path, change="changed", field=path, before=was or None, after=now or None
        )
        for path, was, now in ((each, before.get(each, ""), after.get(each, "")) for each in sorted({*before, *after}))
        if was != now
    ]


def _in_words(change: DefinitionChange) -> DefinitionChange:
    """A change of a process as its file has it: with the names of its fields, and with times as people write them."""
    field = _WORDS[change.what].get(change.field, change.field)
    if not field.endswith(_MS):
        return msgspec.structs.replace(change, field=field)
    before, after = (
        duration_text(timedelta(milliseconds=each)) if isinstance(each, int) else each
        for each in (change.before, change.after)
    )
    return msgspec.structs.replace(change, field=field.removesuffix(_MS), before=before, after=after)


def _parts(
    what: Literal["step", "transition"], before: Mapping[str, object], after: Mapping[str, object]
) -> Iterator[DefinitionChange]:
    for name in sorted({*before, *after}):
        if name not in after:
            yield DefinitionChange(what=what, name=name, change="removed")
        elif name not in before:
            yield DefinitionChange(what=what, name=name, change="added")
        else:
            for path, was, now in _fields(before[name], after[name]):
                yield DefinitionChange(what=what, name=name, change="changed", field=path, before=was, after=now)


def _edges(graph: Graph) -> dict[str, object]:
    """The ways by their names. Their order counts only among those of one source and outcome, so it is told by a number."""
    counts: Counter[str] = Counter()
    found: dict[str, object] = {}
    for edge in graph.edges:
        name = f"{edge.source} --{edge.on}→ {edge.target}"
        counts[name] += 1
        data = msgspec.to_builtins(edge)
        told = {key: value for key, value in data.items() if key not in {"source", "target", "on"}}
        found[f"{name} ({counts[name]})" if counts[name] > 1 else name] = told
    return found


def _fields(before: object, after: object, path: str = "") -> Iterator[tuple[str, object, object]]:
    """The innermost parts of two values that differ, each by its path; expressions as they are written."""
    was, now = _written(before), _written(after)
    if (was is not before or now is not after) and was != now:
        yield path, was, now
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            yield from _fields(before.get(name), after.get(name), f"{path}.{name}" if path else str(name))
    elif before != after:
        yield path, before, after


def _written(value: object) -> object:
    """The text of a compiled expression; any other value as it is."""
    return value["source"] if isinstance(value, dict) and {"source", "tree", "hash"} <= value.keys() else value


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    return msgspec.json.encode(value).decode()
