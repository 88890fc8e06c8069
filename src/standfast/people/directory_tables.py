"""The directory in the engine's own database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from standfast.errors import StoreError
from standfast.kernel.people import DirectoryLook
from standfast.people.directory import Directory
from standfast.store.ports.store import Store

_MEMORY = timedelta(seconds=1)
"""For how long it is believed that a tenant has nobody: what another process writes first is heeded here after so long."""


class TableDirectory(Directory):
    """The people in the tables.

    A tenant without people costs one question in a second at most. As soon as somebody is put in, by this process, every act is looked
    at; by another process, within a second.
    """

    may_hang = False
    changes_unseen = False
    has_versions = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self._empty_until: dict[str, datetime] = {}
        self._grantless_until: dict[str, datetime] = {}
        self._granting: set[str] = set()
        """Tenants that have granted roles; grants are never deleted."""
        self._listeners: list[Callable[[str], None]] = []

    def listen(self, changed: Callable[[str], None]) -> None:
        """Call back with the tenant whenever this process has changed its people."""
        self._listeners.append(changed)

    @property
    def name(self) -> str:
        """The name that is stored with what it vouches for."""
        return "TableDirectory"

    @contextmanager
    def looking(self, tenant: str) -> Iterator[DirectoryLook]:
        """Those who are in the tables."""
        with self._store.survey() as parts, parts.people().looking(tenant) as look:
            yield look

    def is_known_empty(self, tenant: str, now: datetime) -> bool:
        """Whether a tenant had nobody a moment ago."""
        until = self._empty_until.get(tenant)
        return until is not None and now < until

    def note_empty(self, tenant: str, now: datetime) -> None:
        """Believe it for a moment."""
        self._empty_until[tenant] = now + _MEMORY

    def note_change(self, tenant: str) -> None:
        """This process has written somebody."""
        self._empty_until.pop(tenant, None)
        self._grantless_until.pop(tenant, None)
        for changed in self._listeners:
            changed(tenant)

    def grants_roles(self, tenant: str, now: datetime) -> bool:
        """Whether a tenant grants roles; that it does not is believed for a moment. No start fails because this cannot be known now."""
        if tenant in self._granting:
            return True
        until = self._grantless_until.get(tenant)
        if self.is_known_empty(tenant, now) or (until is not None and now < until):
            return False
        try:
            with self.looking(tenant) as look:
                is_granting = look.has_grants()
        except StoreError:
            return False
        if is_granting:
            self._granting.add(tenant)
        else:
            self._grantless_until[tenant] = now + _MEMORY
        return is_granting
