"""What expressions can read, by the kind of the workflow: for each kind the names with their types, and a function that gives the values.

The types are what front ends check expressions against when they compile; the values are there when a run asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from holdfast.expressions import schema_type
from holdfast.expressions.schemas import Type
from holdfast.kernel.moment import Moment
from holdfast.machine.graphs.graph import Kind
from holdfast.machine.graphs.index import DATA
from holdfast.machine.runs.state import Token

Values = dict[str, object]

EVENT: Final = "event"
"""What conditions on events call that which an event brings."""


class Namespaces(NamedTuple):
    """The names that a kind of workflow offers."""

    schema: Type
    """Their types."""
    values: Callable[[Moment, Token, str], Values]
    """What they stand for when a token is at a node."""


def _saga_values(moment: Moment, token: Token, node: str) -> Values:
    actor = moment.actor
    return {
        DATA: token.data,
        "instance_id": str(moment.instance),
        "step_name": node,
        "now": moment.now,
        "actor": {
            "id": actor.id,
            "kind": actor.kind,
            "roles": sorted(actor.roles),
            "capabilities": sorted(actor.capabilities),
        },
    }


SAGA: Final = Namespaces(
    schema_type(
        {
            DATA: "object",
            "instance_id": "string",
            "step_name": "string",
            "now": "datetime",
            "actor": {"id": "string", "kind": "string", "roles": ["string"], "capabilities": ["string"]},
        }
    ),
    _saga_values,
)
"""The data as `input`, and what the engine knows about the moment. What nobody asked for is decided by the actor `system`."""

_BY_KIND: Final[dict[Kind, Namespaces]] = {"saga": SAGA, "process": SAGA, "rules": SAGA, "envelope": SAGA}


def namespaces_of(kind: Kind) -> Namespaces:
    """What the expressions of a kind of workflow can read."""
    return _BY_KIND[kind]
