"""What an organisation says about its documents besides their workflows: its settings, and the rules that every change is judged by.

They are kept in the database, remembered for a while, and joined by what the application knows itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from standfast.engine.dispatcher import Dispatcher
from standfast.graph.model import DocumentRule
from standfast.notifications.templates import NotificationTemplates, manners_of
from standfast.store.ports.versioned_settings import Edition

Data = dict[str, object]
Rules = Callable[[str, str, str], Sequence[DocumentRule]]
"""The rules of a tenant for a type of documents and an action or transition."""
Organisation = Callable[[str], Mapping[str, object]]
"""The settings of a tenant, which expressions read as `org`."""

SETTINGS: Final = "settings"
RULES: Final = "rules:"
_MOST: Final = 10_000
"""Charters that are remembered."""


class OrganisationRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules as they are stored: as they were given, and as they are judged."""

    given: list[Data]
    rules: list[DocumentRule]


_read_rules = msgspec.json.Decoder(OrganisationRules).decode
_read_settings = msgspec.json.Decoder(dict[str, object]).decode


class OrganisationSettings:
    """Knows what was published, and asks whoever else knows; nobody knows anything until somebody says so."""

    def __init__(self) -> None:
        self.rules: Rules | None = None
        self.organisation: Organisation | None = None
        self._service: Dispatcher | None = None
        self._known: dict[tuple[str, str], tuple[datetime, OrganisationRules | Data | None]] = {}
        self._lock = threading.Lock()

    def attach(self, service: Dispatcher) -> None:
        """Know the database."""
        self._service = service

    def tell(self, rules: Rules | None, organisation: Organisation | None) -> None:
        """Somebody knows; None leaves what was said before."""
        self.rules, self.organisation = rules or self.rules, organisation or self.organisation

    def rules_with(
        self, tenant: str, type_: str, action: str, kept: OrganisationRules | Data | None
    ) -> list[DocumentRule]:
        """The rules that a change is judged by: those of a charter that was published, then those of the application."""
        stored = kept.rules if isinstance(kept, OrganisationRules) else []
        found = [each for each in stored if not each.on or action in each.on]
        return found if self.rules is None else [*found, *self.rules(tenant, type_, action)]

    def org_of(self, tenant: str) -> Data:
        """The settings of a tenant: those that were published, and over them those of the application."""
        return self.settings_with(tenant, self._newest(tenant, SETTINGS))

    def settings_with(self, tenant: str, kept: OrganisationRules | Data | None) -> Data:
        """The same with a charter that was read already."""
        stored = kept if isinstance(kept, dict) else {}
        return {**stored, **({} if self.organisation is None else self.organisation(tenant))}

    def manners(self, tenant: str) -> NotificationTemplates | None:
        """How a tenant words its notices; None if it says nothing, or nothing that can be read."""
        return manners_of(self.org_of(tenant))[0]

    def refresh(self) -> None:
        """Forget what is remembered."""
        with self._lock:
            self._known = {}

    def _newest(self, tenant: str, name: str) -> OrganisationRules | Data | None:
        service = self._service
        if service is None:
            return None
        now = service.shared.clock.now()
        known = self._known.get((tenant, name))
        if known is not None and known[0] > now:
            return known[1]
        stored = service.survey(lambda parts: parts.charters().get(tenant, name))
        value = None if stored is None else body_of(stored)
        with self._lock:
            if len(self._known) >= _MOST:
                self._known = {}
            self._known[tenant, name] = (now + service.shared.settings.charter_refresh, value)
        return value


def body_of(stored: Edition) -> OrganisationRules | Data:
    """What a charter says."""
    return _read_settings(stored.content) if stored.name == SETTINGS else _read_rules(stored.content)
