"""Where an engine finds people: its directory, the resolvers of the application, the approval chains."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from standfast.engine.dispatcher import Dispatcher
from standfast.errors import ConfigurationError
from standfast.people.approval_chains import Chain, chain_of
from standfast.people.approvers import ApproverResolver, Sources
from standfast.people.directory import Directory
from standfast.people.directory_tables import TableDirectory
from standfast.people.directory_watch import WatchedDirectory
from standfast.people.resolvers import Resolvers
from standfast.store.ports.store import Store


def directory_of(
    given: Directory | None, store: Store, *, now: Callable[[], datetime], patience: timedelta
) -> Directory:
    """Return the directory of an engine: the one that it was given, or the tables of its database."""
    directory: object = given  # What a caller without types gave.
    if directory is not None and not isinstance(directory, Directory):
        raise ConfigurationError(
            f"the directory is of type {type(directory).__name__}; give Directory.from_file(…), or a subclass of Directory"
        )
    found = given or TableDirectory(store)
    return WatchedDirectory(found, now, patience) if found.changes_unseen else found


class ApproverService:
    """What one engine needs to find people."""

    def __init__(self, service: Dispatcher, directory: Directory) -> None:
        self._service = service
        self.directory = directory
        self.resolvers = Resolvers()
        self.finder = ApproverResolver(
            Sources(
                directory=self.directory,
                resolvers=self.resolvers,
                chain=self._chain,
                next_number=self._next_number,
                now=service.shared.clock.now,
            )
        )

    def _chain(self, tenant: str, name: str) -> Chain | None:
        found = self._service.survey(lambda parts: parts.chains().get(tenant, name))
        return None if found is None else chain_of(found)

    def _next_number(self, counter: str) -> int:
        return self._service.operate(lambda parts: parts.keeper().next_number(counter))
