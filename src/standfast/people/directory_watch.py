"""Watches a directory of the host application: whether it answers, and since when it does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

from standfast.errors import StandfastError, StoreUnavailableError, brief
from standfast.kernel.people import DirectoryLook
from standfast.people.directory import Directory


class DirectoryOutage(NamedTuple):
    """Since when a directory cannot be asked, and why."""

    since: datetime
    told: str


class _Look(NamedTuple):
    """A look that has begun."""

    at: datetime
    ticks: float
    """In monotonic seconds."""


class WatchedDirectory(Directory):
    """A directory of the host's own. Whatever it raises, and how long it takes, is noted; the next answer forgets it.

    Whoever asks it is told StoreUnavailableError: nobody acts whom it has not vouched for.
    """

    def __init__(self, directory: Directory, now: Callable[[], datetime], patience: timedelta) -> None:
        self._directory = directory
        self.may_hang = directory.may_hang
        self._now = now
        self._patience = patience.total_seconds()
        self._guard = threading.Lock()
        self._looks: dict[object, _Look] = {}
        self._answered = -1.0
        self._failed: DirectoryOutage | None = None

    @property
    def name(self) -> str:
        """The class of the host's directory."""
        return self._directory.name

    @contextmanager
    def looking(self, tenant: str) -> Iterator[DirectoryLook]:
        """A look at the host's directory."""
        mark, begun = object(), _Look(self._now(), time.monotonic())
        with self._guard:
            self._looks[mark] = begun
        try:
            with self._directory.looking(tenant) as look:
                yield look
        except StandfastError:  # The engine's own, about what the directory has answered.
            self._end(mark, None, begun)
            raise
        except Exception as error:
            self._end(mark, error, begun)
            told = f"the directory {self.name} cannot be asked ({type(error).__name__}: {brief(str(error))}), and nothing was done"
            raise StoreUnavailableError(f"{told}; try again when it answers") from error
        self._end(mark, None, begun)

    def is_known_empty(self, tenant: str, now: datetime) -> bool:
        """What the host's directory says."""
        return self._directory.is_known_empty(tenant, now)

    def note_empty(self, tenant: str, now: datetime) -> None:
        """Tell the host's directory."""
        self._directory.note_empty(tenant, now)

    def grants_roles(self, tenant: str, now: datetime) -> bool:
        """What the host's directory says."""
        return self._directory.grants_roles(tenant, now)

    def silence(self) -> DirectoryOutage | None:
        """Since when it cannot be asked; None if it can, as far as this process knows."""
        late = time.monotonic() - self._patience
        with self._guard:
            if self._failed is not None:
                return self._failed
            hung = [each for each in self._looks.values() if self._answered < each.ticks <= late]
        if not hung:
            return None
        return DirectoryOutage(min(each.at for each in hung), f"it has not answered within {self._patience:g} s")

    def _end(self, mark: object, error: Exception | None, begun: _Look) -> None:
        with self._guard:
            self._looks.pop(mark, None)
            if error is None:
                self._answered, self._failed = time.monotonic(), None
            elif self._failed is None:
                self._failed = DirectoryOutage(begun.at, f"{type(error).__name__}: {brief(str(error))}")
