"""What a change of a contract would break: what bodies and documents rely on and would not find any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec

from standfast.errors import ExpressionError
from standfast.expressions import Expression
from standfast.features.documents.compiler.artifact import Effective
from standfast.features.documents.contract.expressions import ENTITY
from standfast.features.documents.contract.format import (
    ComputedField,
    Contract,
    EnumField,
    Field,
    ListField,
    ObjectField,
)

What = Literal["field", "state", "transition", "slot", "action"]
How = Literal["added", "removed", "retyped", "narrowed", "changed"]

_BREAKING: Final[frozenset[str]] = frozenset({"removed", "retyped", "narrowed"})


class ContractChange(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between two versions of a contract."""

    what: What
    name: str
    how: How
    message: str
    """What has changed, in one sentence."""
    used_by: list[str] = []
    """Where workflows that were given refer to it: `<workflow>: <node or edge>`."""

    @property
    def breaks(self) -> bool:
        """Whether something relies on it that would not work any more."""
        return self.how in _BREAKING and bool(self.used_by)


def contract_changes(
    old: Contract, new: Contract, workflows: Mapping[str, Effective] | None = None
) -> list[ContractChange]:
    """What differs between two versions of a contract, by kind and name, and which of the published workflows refer to it."""
    changes = sorted(_differences(old, new), key=lambda each: (each.what, each.name, each.how))
    uses = {name: list(_uses(each)) for name, each in sorted((workflows or {}).items())}
    return [
        msgspec.structs.replace(
            each,
            used_by=[
                f"{name}: {place}"
                for name, used in uses.items()
                for what, word, place in used
                if (what, word) == (each.what, each.name)
            ],
        )
        for each in changes
    ]


def _differences(old: Contract, new: Contract) -> Iterator[ContractChange]:
    yield from _fields(old, new)
    life, later = old.lifecycle, new.lifecycle
    yield from _named("state", life.states, later.states)
    yield from _named("transition", _by_name(life.transitions), _by_name(later.transitions))
    yield from _named("slot", {each.id: each for each in old.slots}, {each.id: each for each in new.slots})
    yield from _named("action", _by_name(old.actions), _by_name(new.actions))
    for action in new.actions:
        before = _by_name(old.actions).get(action.name)
        if before is not None and getattr(before, "workflow_allowed", False) and not action.workflow_allowed:
            told = f"the workflow may not do {action.name!r} any more; keep `workflow_allowed`"
            yield ContractChange(what="action", name=action.name, how="narrowed", message=told)


def _fields(old: Contract, new: Contract) -> Iterator[ContractChange]:
    for name in sorted(old.fields.keys() | new.fields.keys()):
        before, after = old.fields.get(name), new.fields.get(name)
        if after is None:
            yield ContractChange(
                what="field",
                name=name,
                how="removed",
                message=f"the field {name!r} is gone; keep it, or change what refers to it",
            )
        elif before is None:
            yield ContractChange(what="field", name=name, how="added", message=f"the field {name!r} is new")
        elif _type(before) != _type(after):
            told = f"the field {name!r} was {_type(before)} and is {_type(after)}; take a new name for it"
            yield ContractChange(what="field", name=name, how="retyped", message=told)
        elif (
            isinstance(before, EnumField)
            and isinstance(after, EnumField)
            and (gone := set(before.values) - set(after.values))
        ):
            told = f"the field {name!r} cannot be {', '.join(sorted(gone))} any more; keep these values"
            yield ContractChange(what="field", name=name, how="narrowed", message=told)
        elif before != after:
            yield ContractChange(
                what="field", name=name, how="changed", message=f"the field {name!r} says something else"
            )


def _named(what: What, before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[ContractChange]:
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            told = f"the {what} {name!r} is gone; keep it, or change what refers to it"
            yield ContractChange(what=what, name=name, how="removed", message=told)
        elif name not in before:
            yield ContractChange(what=what, name=name, how="added", message=f"the {what} {name!r} is new")
        elif before[name] != after[name]:
            yield ContractChange(
                what=what, name=name, how="changed", message=f"the {what} {name!r} says something else"
            )


def _by_name(parts: Iterable[object]) -> dict[str, object]:
    return {str(getattr(each, "name", "")): each for each in parts}


def _type(field: Field) -> str:
    """A type in a word, inner ones included."""
    kind = str(type(field).__struct_config__.tag)
    match field:
        case ListField(items=items) if items is not None:
            return f"{kind} of {_type(items)}"
        case ObjectField(fields=fields):
            return f"{kind} of {', '.join(f'{name} {_type(each)}' for name, each in sorted(fields.items()))}"
        case ComputedField(gives=gives):
            return gives
        case _:
            return kind


def _uses(workflow: Effective) -> Iterator[tuple[str, str, str]]:
    """What a workflow refers to: the kind of thing, its name, and where."""
    for node in workflow.nodes_by_id.values():
        for stored in node.formulas.values():
            yield from (("field", name, node.id) for name in _read_fields(stored))
        covers = node.config.get("covers")
        if isinstance(covers, list):
            yield from (("field", str(name), node.id) for name in covers)
        if node.type in {"action", "policy_gate"}:
            yield "action", str(node.config["action"]), node.id
        if node.type == "slot_proxy":
            yield "slot", node.slot, node.id
    for edge in workflow.edges_by_id.values():
        if edge.when is not None:
            yield from (("field", name, edge.id) for name in _read_fields(edge.when))


def _read_fields(stored: Mapping[str, object]) -> list[str]:
    """The fields that an expression reads."""
    try:
        read = Expression.from_data(stored)
    except ExpressionError:
        return []
    paths = [path.split(".") for path in read.variables]
    return sorted({path[1].rstrip("?") for path in paths if path[0] == ENTITY and len(path) > 1})
