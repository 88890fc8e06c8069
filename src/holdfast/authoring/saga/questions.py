"""What a human step asks: its subject with holes for values of the data, what it shows of them, and what a rejection leads to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast, get_args

from holdfast.authoring.saga.expressions import read_data, text_of
from holdfast.authoring.saga.parts import Parts
from holdfast.expressions.tree import Variable
from holdfast.machine.graphs.graph import Human, OnReject, Plain

REFUSALS: Final[tuple[OnReject, ...]] = get_args(OnReject)


def question(
    parts: Parts, name: str, *, subject: str, role: str, shows: Sequence[str], on_reject: OnReject | None
) -> Human:
    """What the node of a human step does; what is wrong with it becomes a finding."""
    shown = _shown(parts, name, shows)
    text, template = text_of(parts, name, subject)
    return Human(subject=text, role=role, shows=shown, on_reject=on_reject, template=template)


def _shown(parts: Parts, name: str, shows: object) -> dict[str, dict[str, Plain]]:
    """The stored paths of what is shown, by the names that their author wrote."""
    if not isinstance(shows, list | tuple) or not all(isinstance(each, str) for each in shows):
        message = f"{name!r} shows {shows!r}; give a list of paths into the data, such as ['amount', 'supplier.name']"
        parts.find("bad_expression", message, name)
        return {}
    found: dict[str, dict[str, Plain]] = {}
    for path in cast("Sequence[str]", shows):
        read = read_data(parts, name, path, "mapping")
        if read is not None and isinstance(read.tree, Variable):
            found[path] = read.to_data()
        elif read is not None:
            message = f"{name!r} shows {path!r}, which is no path into the data; compute it in a step before"
            parts.find("bad_expression", message, name)
    return found
