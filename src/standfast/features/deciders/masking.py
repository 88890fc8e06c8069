"""What the run of a document holds of fields that are not visible to whoever looks at the run: it is masked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from standfast.calls.context import CallContext
from standfast.errors import StandfastError
from standfast.graph.field_visibility import MASKED, Audiences, Held
from standfast.kernel.actor import Actor
from standfast.kernel.program import Program
from standfast.machine.documents.visibility import hidden_from, is_for
from standfast.machine.machine import GraphMachine
from standfast.machine.model.queries.fields import masked

DOCUMENTS: Final = "envelope"
"""The kind of runs that are documents."""


class Mask(NamedTuple):
    """Hides from one reader what a run holds of fields that they may not see."""

    actor: Actor
    names: Mapping[str, Held]
    """Names in the data of the run."""
    nodes: Mapping[str, Held]
    """Nodes whose answers, or items, are hidden."""
    is_blind: bool = False
    """Whether nobody knows what is hidden, because only newer code can read the workflow."""

    def data(self, value: object) -> object:
        """Mask the names in some data, however deep they lie."""
        if self.is_blind:
            return MASKED if value else value
        if not self.names:
            return value
        match value:
            case dict():
                return {
                    name: self._part(self.names[name], each) if name in self.names else self.data(each)
                    for name, each in value.items()
                }
            case list():
                return [self.data(each) for each in value]
            case _:
                return value

    def output(self, node: str, value: object) -> object:
        """Mask the answer of a step."""
        held = self.nodes.get(node)
        return self.data(value) if held is None or value is None else self._part(held, value)

    def event(self, node: str, data: dict[str, object]) -> dict[str, object]:
        """Mask what an event says about a step at a node."""
        return {name: self._told(node, name, value) for name, value in data.items()}

    def _told(self, node: str, name: str, value: object) -> object:
        if name == "output":
            return self.output(node, value)
        if name == "items" and isinstance(value, list):
            return [self.output(node, each) for each in value]
        return value if self.is_blind else self.data(value)

    def _part(self, held: Held, value: object) -> object:
        return MASKED if held.field is None else masked(held.field, value, hidden_from(self.actor), MASKED)

    @staticmethod
    def whole(value: object) -> object:
        """Mask what may hold the whole document, such as the input of a handler."""
        return MASKED if value is not None else None


def mask_for(desk: CallContext, kind: str, definition: str, version: str = "") -> Mask | None:
    """What to hide of a run from the actor of a desk: by the version that it began with, and by the newest one, which it may follow by now."""
    actor = desk.request.actor
    if kind != DOCUMENTS or actor.kind == "system" or desk.registry.is_decider(definition):
        return None
    library = desk.registry.library
    try:
        programs = [library.program(desk.tenant, definition, version), library.recent(desk.tenant, definition)]
    except StandfastError:
        return Mask(actor, {}, {}, is_blind=True)
    found = [_audiences(each) for each in programs if each is not None]
    if all(is_for(each.everything, actor) for each in found):
        return None
    return Mask(
        actor,
        names={name: held for each in found for name, held in each.names.items() if not is_for(held.audience, actor)},
        nodes={node: held for each in found for node, held in each.nodes.items() if not is_for(held.audience, actor)},
    )


def _audiences(program: Program) -> Audiences:
    assert isinstance(program.decider, GraphMachine)
    return program.decider.routes.audiences
