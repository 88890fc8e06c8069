"""What a human step asks: its subject with holes for values of the data, what it shows of them, and what a rejection leads to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast, get_args

from holdfast.authoring.saga.parts import Parts
from holdfast.errors import ExpressionError
from holdfast.expressions import Expression, Options, Spelling, parse
from holdfast.expressions.tree import Constant, Variable
from holdfast.machine.graphs.graph import Human, OnReject, Plain

REFUSALS: Final[tuple[OnReject, ...]] = get_args(OnReject)

_OPTIONS = Options(root="input", namespaces=frozenset({"input"}))
"""Every name is one of the data: rows are made again from the history, which does not tell what else there was at the time."""


def question(
    parts: Parts, name: str, *, subject: str, role: str, shows: Sequence[str], on_reject: OnReject | None
) -> Human:
    """What the node of a human step does; what is wrong with it becomes a finding."""
    asked = Human(subject=subject, role=role, shows=_shown(parts, name, shows), on_reject=on_reject)
    words: object = subject  # What a caller without types gave; the checks of the graph refuse what is no text.
    read = _read(parts, name, subject, "template") if isinstance(words, str) else None
    if read is None:
        return asked
    if isinstance(read.tree, Constant):
        return Human(subject=str(read.tree.value), role=role, shows=asked.shows, on_reject=on_reject)
    return Human(subject=subject, role=role, shows=asked.shows, on_reject=on_reject, template=read.to_data())


def _shown(parts: Parts, name: str, shows: object) -> dict[str, dict[str, Plain]]:
    """The stored paths of what is shown, by the names that their author wrote."""
    if not isinstance(shows, list | tuple) or not all(isinstance(each, str) for each in shows):
        message = f"{name!r} shows {shows!r}; give a list of paths into the data, such as ['amount', 'supplier.name']"
        parts.find("bad_expression", message, name)
        return {}
    found: dict[str, dict[str, Plain]] = {}
    for path in cast("Sequence[str]", shows):
        read = _read(parts, name, path, "mapping")
        if read is not None and isinstance(read.tree, Variable):
            found[path] = read.to_data()
        elif read is not None:
            message = f"{name!r} shows {path!r}, which is no path into the data; compute it in a step before"
            parts.find("bad_expression", message, name)
    return found


def _read(parts: Parts, name: str, source: str, spelling: Spelling) -> Expression | None:
    try:
        return parse(source, spelling=spelling, options=_OPTIONS)
    except ExpressionError as error:
        parts.find("bad_expression", f"{source!r}, which {name!r} asks or shows, is wrong: {error}", name)
        return None
