"""What the addresses of the API name, and requests as the document shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import httpx

from api.world import Client
from standfast.http.requests.routing import Route

GHOST = "0193a2b4-0000-7000-8000-00000000dead"
GHOSTS = {
    "run": GHOST, "task": f"{GHOST}:1", "process": GHOST, "letter": "999999", "event": GHOST, "pause": "999999",
    "person": "ghost-ann", "role": "ghost-role", "delegation": "999999", "absence": "999999", "chain": "ghost-chain",
    "definition": "ghost-own", "key": GHOST.replace("-", ""), "notification": "999999", "workflow": "ghost.approval", "hook": "ghost",
    "paper": GHOST, "report": "ghost-report", "step": "1", "schedule": "ghost-schedule", "batch": "ghost-batch", "session": GHOST.replace("-", ""), "provider": "ghost",
    "type": "ghost_invoice", "document": "ghost-1", "draft": GHOST, "charter": "rules:ghost_invoice", "template": "ghost_template", "message": "999999", "projection": "ghost-projection",
}  # fmt: skip
"""What nobody has."""


def name(route: Route) -> str:
    """A route in the name of a test."""
    return f"{route.method} {route.path}"


def thing(route: Route, parameter: str) -> str:
    """What a part of an address names."""
    subjects = {
        "/api/v1/tasks": "task", "/ui/": "process", "/api/v1/dead-letters": "letter", "/api/v1/pauses": "pause",
        "/api/v1/directory/delegations": "delegation", "/api/v1/directory/absences": "absence",
        "/api/v1/notifications": "notification", "/api/v1/chains": "chain", "/api/v1/definitions": "definition",
        "/api/v1/executions": "run", "/api/v1/invariants": "paper", "/api/v1/reports": "definition",
        "/api/v1/instances": "run", "/api/v1/audit/instances": "run", "/api/v1/inbox": "message", "/api/v1/projections": "projection",
    }  # fmt: skip
    special = {
        "person": "person", "role": "role", "key": "key", "event_id": "event", "workflow_id": "workflow", "hook": "hook",
        "schedule": "schedule", "batch": "batch",
        "session": "session", "provider": "provider", "type": "type", "document": "document", "version": "step", "draft": "draft",
        "charter": "charter", "template": "template",
    }  # fmt: skip
    if route.path.startswith("/api/v1/executions") and parameter == "number":
        return "step"
    return special.get(parameter) or next(what for base, what in subjects.items() if route.path.startswith(base))


def things(route: Route) -> list[str]:
    """All that an address names."""
    return [thing(route, each) for each in re.findall(r"\{(\w+)\}", route.path)]


def address(route: Route, named: Mapping[str, str]) -> str:
    """The address of something."""
    path = re.sub(r"\{(\w+)\}", lambda found: named[thing(route, found[1])], route.path)
    required = {"person": "ghost-ann", "at": "1", "old": "1", "new": "1", "number": "1", "link": "ghost"}
    wanted = [key for key in required if key in route.query.__struct_fields__ and route.path.endswith(
        ("delegations", "absences", "fork-preview", "diff", "/state", "/kept")
    )]  # fmt: skip
    return path + ("?" + "&".join(f"{key}={required[key]}" for key in wanted) if wanted else "")


def sent(client: Client, route: Route, named: Mapping[str, str], **more: Any) -> httpx.Response:
    """The answer to a request as the document shows it."""
    body = {"json": {} if route.example is None else route.example} if route.body is not None else {}
    return client.ask(route.method, address(route, named), **{**body, **more})
