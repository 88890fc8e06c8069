"""What somebody changed that is no instance: a person, a definition, a key, a rule, a pause. Instances tell that by their events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One act of somebody, for auditors: who did it, for whom, why, and what was so before and after."""

    id: int = 0
    tenant: str
    """Whose it is; `*` for what all tenants share."""
    subject: str
    """What sort of thing was changed: `person`, `definition`, `key`."""
    name: str
    """Which one."""
    action: str
    """What was done: the name of the call, such as `grant`."""
    before: Mapping[str, object] = {}
    """What was so before, as far as it is something else now."""
    after: Mapping[str, object] = {}
    """What is so since then."""
    reason: str = ""
    """Why, in the actor's words."""
    actor: str
    on_behalf_of: str = ""
    """For whom the actor stood in; empty if for themselves."""
    trace: str = ""
    """Names the request that it was part of; empty if none was named."""
    at: datetime
    mark: str
    """Names the call: one that is repeated, because nobody knows whether it was done, is one change."""
