"""All routes of the API, by subject."""

from __future__ import annotations

from holdfast.http.routes import (
    batches,
    bodies,
    chains,
    charters,
    contracts,
    controls,
    dead_letters,
    definitions,
    directory,
    documents,
    events,
    executions,
    keys,
    notifications,
    pauses,
    platform,
    processes,
    repairs,
    schedules,
    seals,
    sessions,
    standing,
    tasks,
    workflows,
)
from holdfast.http.routing import Route

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
    *dead_letters.ROUTES,
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
