"""What expressions can read, by the kind of the workflow: for each kind the names with their types, and a function that gives the values.

The types are what front ends check expressions against when they compile; the values are there when a run asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from standfast.expressions import schema_type
from standfast.expressions.model.schema import Type
from standfast.graph.index import DATA, EVENT, WORKFLOW, names_of
from standfast.graph.model import Kind
from standfast.graph.values.external_reads import ORG, RELATED
from standfast.kernel.actor import Actor
from standfast.kernel.moment import Moment
from standfast.machine.model.state import RunState

Values = dict[str, object]

APPROVAL, RESUME = "approval", "resume"
"""What the last decision and the last resume have brought; the data of the run stays as it was."""

_NOTHING: Final[Values] = {}


class ScopeQuery(NamedTuple):
    """What there is to read when an expression is asked."""

    moment: Moment
    state: RunState
    node: str
    data: Mapping[str, object]
    answer: object = None
    """What the node was just left with; None if it was not, or with nothing."""


class Namespaces(NamedTuple):
    """The names that a kind of workflow offers."""

    schema: Type
    """Their types."""
    values: Callable[[ScopeQuery], Values]
    """What they stand for."""


_ACTOR: Final = {"id": "string", "kind": "string", "roles": ["string"], "capabilities": ["string"]}


def actor_names(actor: Actor) -> Values:
    """An actor as expressions read one."""
    return {
        "id": actor.id,
        "kind": actor.kind,
        "roles": sorted(actor.roles),
        "capabilities": sorted(actor.capabilities),
    }


def _saga_values(asked: ScopeQuery) -> Values:
    return {
        DATA: asked.data,
        "instance_id": str(asked.moment.instance),
        "step_name": asked.node,
        "now": asked.moment.now,
        "actor": actor_names(asked.moment.actor),
        **_brought(asked.state),
    }


def _brought(state: RunState) -> Values:
    """What came last from people and the world."""
    return {
        APPROVAL: next(reversed(state.decided.values()), _NOTHING),
        EVENT: state.event or _NOTHING,
        RESUME: _NOTHING if state.resumed is None else state.resumed.data,
    }


_BROUGHT: Final = {APPROVAL: "object", EVENT: "object", RESUME: "object"}

SAGA: Final = Namespaces(
    schema_type(
        {
            DATA: "object",
            "instance_id": "string",
            "step_name": "string",
            "now": "datetime",
            "actor": _ACTOR,
            **_BROUGHT,
        }
    ),
    _saga_values,
)
"""The data as `input`, what the engine knows about the moment, and what came last from people and the world. What nobody asked for is decided by the actor `system`."""


def _process_values(asked: ScopeQuery) -> Values:
    moment = asked.moment
    return {
        WORKFLOW: asked.data,
        DATA: asked.answer if isinstance(asked.answer, dict) else {},
        "context": {
            "tenant_id": moment.tenant,
            "partition_id": moment.partition,
            "subject_id": asked.state.requester,
            "instance_id": str(moment.instance),
            "business_key": moment.key,
            "step_id": asked.node,
        },
        "now": moment.now,
        "actor": actor_names(moment.actor),
        **_brought(asked.state),
    }


PROCESS: Final = Namespaces(
    schema_type(
        {
            WORKFLOW: "object",
            DATA: "object",
            "context": dict.fromkeys(
                ("tenant_id", "partition_id", "subject_id", "instance_id", "business_key", "step_id"), "string"
            ),
            "now": "datetime",
            "actor": _ACTOR,
            **_BROUGHT,
        }
    ),
    _process_values,
)
"""The data as `workflow`, what an answer has just brought as `input`, the instance as `context`, and what came last from people and the world: the same for whoever moves it on."""

ENTITY, CONTEXT = "entity", "context"


def text_names(state: RunState, data: Values) -> Values:
    """What texts with holes, keys and rules for people read: the data, and the document if the run is one."""
    if state.document is None:
        return names_of(data)
    document = state.document
    known: Values = {ENTITY: document.names(), CONTEXT: data, ORG: document.org}
    return {**names_of(data), **known, RELATED: document.related}


def _envelope_values(asked: ScopeQuery) -> Values:
    document, moment = asked.state.document, asked.moment
    intent = None if document is None else document.intent
    return {
        ENTITY: _NOTHING if document is None else document.names(),
        ORG: _NOTHING if document is None else document.org,
        RELATED: _NOTHING if document is None else document.related,
        CONTEXT: asked.data,
        "now": moment.now,
        "actor": actor_names(moment.actor if intent is None else intent.actor),
        **_brought(asked.state),
    }


ENVELOPE: Final = Namespaces(
    schema_type(
        {
            ENTITY: "object",
            ORG: "object",
            RELATED: "object",
            CONTEXT: "object",
            "now": "datetime",
            "actor": _ACTOR,
            **_BROUGHT,
        }
    ),
    _envelope_values,
)
"""The document as `entity`, the organisation's settings as `org`, what the steps have answered as `context`; `actor` is whoever asked for the transition."""

_BY_KIND: Final[dict[Kind, Namespaces]] = {"saga": SAGA, "process": PROCESS, "rules": SAGA, "envelope": ENVELOPE}


def namespaces_of(kind: Kind) -> Namespaces:
    """What the expressions of a kind of workflow can read."""
    return _BY_KIND[kind]
