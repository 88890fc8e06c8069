"""A process that tests act on, and those who act."""

from __future__ import annotations

import json
from typing import Any

from standfast import Actor, Engine, RequestContext, load_processes
from standfast.app.api.sync import Calls

ORDERS = """
domain: orders
workflows:
  - id: orders.approval
    version: 1
    timeout: 72h
    on_timeout: expired
    capabilities: {start: "orders:start", cancel: "orders:cancel"}
    steps:
      - id: review
        type: approval
        title: Review the order
        assignee: {role: approver}
        capability: orders:approve
        form: {type: object, properties: {approval_notes: {type: string, title: Notes}}, order: [approval_notes]}
      - id: process
        type: system
        operation: orders.confirm
        input: {order_id: workflow.order_id, tenant: context.tenant_id, by: context.subject_id, kind: "'new'", none: workflow.nothing}
        output: {confirmed_at: response.at}
        retry: {attempts: 1}
      - {id: notify, type: notification, operation: orders.notify, retry: {attempts: 1}}
      - {id: approved, type: terminal, outcome: approved}
      - {id: rejected, type: terminal, outcome: rejected}
      - {id: expired, type: terminal, outcome: expired}
    transitions:
      - {from: review, event: approved, to: process, label: Approve, condition: workflow.total < 100}
      - {from: review, event: approved, to: process, label: Approve, guard: "orders:large"}
      - {from: review, event: rejected, to: rejected, label: Reject}
      - {from: review, event: returned, to: review, condition: input.why? == 'unclear'}
      - {from: process, event: completed, to: notify}
      - {from: notify, event: completed, to: approved}
"""

ANN = Actor(id="ann", capabilities=frozenset({"orders:start"}))
"""Starts orders."""
BOB = Actor(id="bob", roles=frozenset({"approver"}), capabilities=frozenset({"orders:approve", "orders:cancel"}))
"""Approves small ones."""
CAT = Actor(id="cat", roles=frozenset({"approver"}), capabilities=frozenset({"orders:*"}))
"""Approves all of them."""
EVE = Actor(id="eve")
"""Has no business here."""
INPUT: dict[str, Any] = {"order_id": "ord-123", "total": 50}


def process(*steps: dict[str, Any], ways: str, **rest: Any) -> str:
    """A file with one process, `w`: its ways as `from event to`, separated by commas."""
    transitions = [dict(zip(("from", "event", "to"), each.split(), strict=True)) for each in ways.split(",")]
    return json.dumps({"domain": "d", "workflows": [{"id": "w", "steps": steps, "transitions": transitions, **rest}]})


def person(name: str, **rest: Any) -> dict[str, Any]:
    """A step that waits for somebody."""
    return {"id": name, "type": "action", **rest}


def system(name: str, operation: str = "orders.confirm", **rest: Any) -> dict[str, Any]:
    """A step that calls something once."""
    return {"id": name, "type": "system", "operation": operation, "retry": {"attempts": 1}, **rest}


def ends(*names: str) -> list[dict[str, Any]]:
    """Terminals."""
    return [{"id": name, "type": "terminal"} for name in names]


class Backend:
    """What the operations do, and what they were given."""

    def __init__(self) -> None:
        self.given: list[tuple[str, dict[str, object]]] = []
        self.failing: set[str] = set()

    def confirm(self, data: dict[str, object]) -> dict[str, object]:
        """Confirm an order."""
        return self._done("confirm", data)

    def notify(self, data: dict[str, object]) -> dict[str, object]:
        """Tell the customer."""
        return self._done("notify", data)

    def _done(self, name: str, data: dict[str, object]) -> dict[str, object]:
        self.given.append((name, dict(data)))
        if name in self.failing:
            raise ValueError(f"{name} is down")
        return {"at": "noon", "noise": 1}

    @property
    def calls(self) -> list[str]:
        """What was called, in order."""
        return [name for name, _ in self.given]


def registered(engine: Engine, text: str) -> None:
    """Publish processes."""
    for definition in load_processes(text):
        engine.register(definition)


def published(engine: Engine, text: str = ORDERS) -> Backend:
    """Publish processes, with a backend for their operations."""
    backend = Backend()
    registered(engine, text)
    engine.handle("orders.confirm", backend.confirm)
    engine.handle("orders.notify", backend.notify)
    return backend


def asking(engine: Engine, actor: Actor, *, tenant: str = "default", partition: str = "") -> Calls:
    """The calls of somebody."""
    return engine.acting(RequestContext(tenant=tenant, partition=partition, actor=actor))
