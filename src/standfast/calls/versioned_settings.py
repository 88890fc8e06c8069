"""Publishing of approval chains, rules and settings, with the audit entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from standfast.calls.context import CallContext
from standfast.kernel.row_kinds.changes import Change
from standfast.store.ports.store import StoreParts
from standfast.store.ports.versioned_settings import Edition, Editions


class _Published(NamedTuple):
    former: Edition | None
    newest: Edition | None


def publish_edition(
    desk: CallContext,
    subject: str,
    edition: Edition,
    editions: Callable[[StoreParts], Editions],
    *,
    reason: str,
    replaces: int | None = None,
    check: Callable[[CallContext], None],
) -> Edition | None:
    """Publish an edition behind the newest one and return what is newest then; None if that is not the one that it replaces.

    An edition that says the same as the newest one changes nothing and leaves no entry.
    """
    entry = desk.changed(subject, edition.name, "publish", reason=reason)

    def work(parts: StoreParts) -> _Published:
        kept = editions(parts)
        return _Published(kept.get(edition.tenant, edition.name), kept.publish(edition, replaces=replaces))

    def change(done: _Published) -> Change | None:
        former, newest = 0 if done.former is None else done.former.version, done.newest
        # Another process may have published the same since the first look.
        if newest is None or newest.version == former or newest.published_at != edition.published_at:
            return None
        return replace(entry, before={"version": former} if former else {}, after={"version": newest.version})

    return desk.record(change, work, may_repeat=True, check=check).newest
