"""Files that tests begin with, and change."""

from __future__ import annotations

import json
from copy import deepcopy
from importlib import resources
from typing import Any

from standfast import Definition, DefinitionError, load_processes
from standfast.errors import Diagnostic

ORDERS: dict[str, Any] = {
    "domain": "orders",
    "workflows": [
        {
            "id": "orders.approval",
            "version": 1,
            "timeout": "72h",
            "on_timeout": "expired",
            "capabilities": {"start": "orders:start", "cancel": "orders:cancel"},
            "steps": [
                {
                    "id": "review",
                    "type": "approval",
                    "title": "Review",
                    "assignee": {"role": "approver"},
                    "capability": "orders:approve",
                    "form": {"type": "object", "properties": {"notes": {"type": "string"}}, "order": ["notes"]},
                },
                {
                    "id": "process",
                    "type": "system",
                    "operation": "confirm",
                    "input": {"order_id": "workflow.order_id", "kind": "'new'", "tries": 3},
                    "output": {"confirmed_at": "response.at"},
                    "retry": {"attempts": 2, "delay": "10s"},
                },
                {"id": "notify", "type": "notification", "operation": {"name": "mail", "arguments": {"channel": "x"}}},
                {"id": "pause", "type": "wait", "event": "paid", "timeout": "2d", "on_timeout": "rejected"},
                {"id": "approved", "type": "terminal", "outcome": "approved"},
                {"id": "rejected", "type": "terminal"},
                {"id": "expired", "type": "terminal"},
            ],
            "transitions": [
                {"from": "review", "event": "approved", "to": "process", "condition": "workflow.total < 100"},
                {"from": "review", "event": "approved", "to": "process", "guard": "orders:large", "label": "Approve"},
                {"from": "review", "event": "rejected", "to": "rejected", "label": "Reject"},
                {"from": "process", "event": "completed", "to": "pause"},
                {"from": "process", "event": "error", "to": "review"},
                {"from": "process", "event": "retry", "to": "process", "guard": "orders:retry"},
                {"from": "pause", "event": "paid", "to": "notify"},
                {"from": "notify", "event": "completed", "to": "approved"},
            ],
        }
    ],
}
"""A workflow with a step of every automatic kind; it has no warnings."""


def changed(**changes: Any) -> dict[str, Any]:
    """The example with other values at these paths: parts are joined by two underscores, numbers are places; None removes, a place at the end of a list appends."""
    file = deepcopy(ORDERS)
    for path, value in changes.items():
        *way, last = [int(part) if part.isdigit() else part for part in path.split("__")]
        at: Any = file["workflows"][0]
        for part in way:
            at = at[part]
        if value is None:
            del at[last]
        elif isinstance(at, list) and last == len(at):
            at.append(value)
        else:
            at[last] = value
    return file


def text_of(data: object) -> str:
    """A file as its author might have written it, one value to a line."""
    return json.dumps(data, indent=1)


def load(data: object) -> Definition:
    """The only definition of a file."""
    (definition,) = load_processes(text_of(data))
    return definition


def found(text: str | bytes | dict[str, Any]) -> tuple[Diagnostic, ...]:
    """What is wrong with a file."""
    try:
        load_processes(text if isinstance(text, str | bytes) else text_of(text))
    except DefinitionError as error:
        return error.diagnostics
    return ()


def codes(text: str | bytes | dict[str, Any]) -> list[str]:
    """The codes of what is wrong with a file."""
    return [each.code for each in found(text)]


def templates() -> dict[str, str]:
    """The files that come with the package, by name."""
    folder = resources.files("standfast") / "cli/develop/samples"
    return {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir() if each.name.endswith(".yaml")}
