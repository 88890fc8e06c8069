"""All routes of the API, by subject."""

from __future__ import annotations

from standfast.http.requests.routing import Route
from standfast.http.routes.admin import (
    chains,
    directory,
    instances,
    keys,
    notifications,
    platform,
    reports,
    seals,
    sessions,
)
from standfast.http.routes.admin import (
    health as standing,
)
from standfast.http.routes.documents import (
    bodies,
    contracts,
    documents,
)
from standfast.http.routes.documents import (
    settings as charters,
)
from standfast.http.routes.documents import (
    workflow_versions as workflows,
)
from standfast.http.routes.workflows import (
    batches,
    dead_letters,
    definitions,
    events,
    pauses,
    processes,
    schedules,
    tasks,
)
from standfast.http.routes.workflows import (
    control as controls,
)
from standfast.http.routes.workflows import (
    repair as repairs,
)
from standfast.http.routes.workflows import (
    runs as executions,
)

ROUTES: tuple[Route, ...] = (
    *standing.ROUTES,
    *executions.ROUTES,
    *controls.ROUTES,
    *repairs.ROUTES,
    *processes.ROUTES,
    *definitions.ROUTES,
    *tasks.ROUTES,
    *documents.ROUTES,
    *bodies.ROUTES,
    *workflows.ROUTES,
    *contracts.ROUTES,
    *charters.ROUTES,
    *seals.ROUTES,
    *reports.ROUTES,
    *dead_letters.ROUTES,
    *instances.ROUTES,
    *events.ROUTES,
    *notifications.ROUTES,
    *pauses.ROUTES,
    *directory.ROUTES,
    *chains.ROUTES,
    *keys.ROUTES,
    *schedules.ROUTES,
    *batches.ROUTES,
    *sessions.ROUTES,
    *platform.ROUTES,
)
"""The table. Of two addresses that fit, the first one is meant."""
