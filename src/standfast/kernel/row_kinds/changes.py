"""Audit rows of changes to things that are no instances: people, definitions, keys, rules, pauses.

Instances record changes as events.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change for auditors: the actor, the reason, and the values before and after."""

    id: int = 0
    tenant: str
    """Tenant of the change. `*` for what all tenants share."""
    subject: str
    """Kind of the changed thing: `person`, `definition`, `key`."""
    name: str
    """Name of the changed thing."""
    action: str
    """Name of the call, such as `grant`."""
    before: Mapping[str, object] = {}
    """The previous values that changed."""
    after: Mapping[str, object] = {}
    """The new values."""
    reason: str = ""
    """The actor's reason."""
    actor: str
    on_behalf_of: str = ""
    """The person whom the actor represented. Empty if the actor acted for itself."""
    trace: str = ""
    """Trace of the request. Empty without one."""
    at: datetime
    mark: str
    """Id of the call. A repeated call, whose first outcome was unknown, is one change."""
