"""Calls of what organisations say of their documents: rules for their types, and settings."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from standfast.calls.authorization import check_unbound
from standfast.calls.catalog.organisation_settings import RULES, SETTINGS, OrganisationRules, body_of
from standfast.calls.context import CallContext, checked_after, checked_key, checked_text
from standfast.calls.handlers.step_handlers import plain_data
from standfast.calls.versioned_settings import publish_edition
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ForbiddenError, NotFoundError, PayloadError, RejectedError
from standfast.features.documents.publishing.active_version import workflow_of
from standfast.features.documents.rule_parser import read_rules
from standfast.features.documents.writes import spec_of
from standfast.graph.values.business_time import calendars_of
from standfast.kernel.decision import NOT_ALLOWED
from standfast.notifications.templates import manners_of
from standfast.store.ports.versioned_settings import Edition

GOVERN = "documents:govern"
"""The capability of whoever says by which rules documents are judged, and what the settings of the organisation are."""
Data = dict[str, object]


class Charter(msgspec.Struct, frozen=True, kw_only=True):
    """One version of rules or settings."""

    name: str
    """`rules:<type>`, or `settings`."""
    version: int
    rules: builtins.list[Data]
    """The rules as they were given; empty for settings."""
    settings: Data
    """The settings; empty for rules."""
    comment: str
    published_by: str
    published_at: datetime


class FutureCharters:
    """What organisations say of their documents. To publish takes the capability `documents:govern`; the newest version counts.

    Decisions about documents go by it at once, in all processes. For notices and dry runs other processes know of settings after
    `charter_refresh` at the latest, or when they call `refresh`.
    """

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def publish_rules(
        self,
        type: str,  # noqa: A002 - the word that everybody uses for it
        rules: Sequence[Mapping[str, object]],
        *,
        replaces: int | None = None,
        comment: str = "",
    ) -> Reply[Charter]:
        """Publish all rules for a type of documents, in the order in which they are judged; those that were there before count no more.

        DefinitionError lists everything that is wrong with them. With `replaces` it is refused (`version_conflict`) if the newest version is another
        one by now; 0 says that there is none.
        """

        def write() -> Charter:
            self._check()
            name, _ = workflow_of(self._desk, type)
            made = read_rules(spec_of(self._desk, name), rules)
            given = plain_data({"rules": [dict(each) for each in rules]}, "rules", limit=self._desk.payload_limit)
            kept = OrganisationRules(given=_listed(given["rules"]), rules=made)
            return self._publish(f"{RULES}{name}", msgspec.json.encode(kept), comment, replaces)

        return self._desk.act(write)

    def publish_settings(
        self, settings: Mapping[str, object], *, replaces: int | None = None, comment: str = ""
    ) -> Reply[Charter]:
        """Publish the settings of the organisation, all of them: expressions read them as `org`.

        Its calendars, by name under `calendars`, say when it works: times of steps may count by them. Under `notices` it says how people
        are told: templates by occasion, channel and language, and what nobody can do without. `replaces` is as in `publish_rules`.
        """

        def write() -> Charter:
            self._check()
            if not isinstance(settings, Mapping):
                raise PayloadError(f"settings are an object of values by name, not {settings!r:.200}")
            given = plain_data(dict(settings), "settings", limit=self._desk.payload_limit)
            flaws = [*calendars_of(given)[1], *manners_of(given)[1]]
            if flaws:
                raise PayloadError("; ".join(flaws))
            return self._publish(SETTINGS, msgspec.json.encode(given), comment, replaces)

        return self._desk.act(write)

    def rules(self, type: str, version: int = 0) -> Reply[Charter]:  # noqa: A002 - see publish_rules
        """The rules for a type of documents, the newest version if none is given."""
        return self._desk.read(lambda: self._get(f"{RULES}{checked_key(type, 'type')}", version))

    def settings(self, version: int = 0) -> Reply[Charter]:
        """The settings of the organisation, the newest version if none is given."""
        return self._desk.read(lambda: self._get(SETTINGS, version))

    def list(self) -> Reply[builtins.list[Charter]]:
        """All versions of all rules and settings, by name, each oldest first: who has changed what, and when."""
        survey = self._desk.service.survey
        return self._desk.read(
            lambda: [_charter(each) for each in survey(lambda parts: parts.charters().listed(self._desk.tenant))]
        )

    def refresh(self) -> Reply[None]:
        """Have this process look anew at once."""
        return self._desk.read(self._desk.registry.charters.refresh)

    def _check(self) -> None:
        _check_governor(self._desk.looked_up())

    def _publish(self, name: str, body: bytes, comment: str, replaces: int | None) -> Charter:
        if len(body) > self._desk.payload_limit:
            told = f"this takes {len(body)} bytes and the limit is {self._desk.payload_limit}; make it shorter"
            raise PayloadError(told)
        service = self._desk.service
        given = Edition(
            tenant=self._desk.tenant,
            name=checked_key(name, "name"),
            version=0,
            content=body,
            note=checked_text(comment, "comment"),
            published_by=self._desk.request.actor.id,
            published_at=service.shared.clock.now(),
        )
        expected = None if replaces is None else checked_after(replaces)
        stored = publish_edition(
            self._desk,
            "charter",
            given,
            lambda parts: parts.charters(),
            reason=comment,
            replaces=expected,
            check=_check_governor,
        )
        if stored is None:
            told = f"{name} is not at version {expected} any more; look at it again"
            raise RejectedError(reason="version_conflict", message=told)
        self._desk.registry.charters.refresh()
        return _charter(stored)

    def _get(self, name: str, version: object) -> Charter:
        if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 2**31:
            raise PayloadError(f"the version is a number from 1, not {version!r}")
        found = self._desk.service.survey(lambda parts: parts.charters().get(self._desk.tenant, name, version))
        if found is None:
            raise NotFoundError("charter", name, hint="`engine.charters.list` names those that there are")
        return _charter(found)


def _check_governor(desk: CallContext) -> None:
    actor = desk.request.actor
    check_unbound(desk, "rules and settings")
    if not actor.may(GOVERN):
        told = f"{actor.id!r} may not publish rules or settings: that takes the capability {GOVERN!r}"
        raise ForbiddenError(reason=NOT_ALLOWED, message=told)


def _charter(stored: Edition) -> Charter:
    body = body_of(stored)
    return Charter(
        name=stored.name,
        version=stored.version,
        rules=body.given if isinstance(body, OrganisationRules) else [],
        settings={} if isinstance(body, OrganisationRules) else body,
        comment=stored.note,
        published_by=stored.published_by,
        published_at=stored.published_at,
    )


def _listed(given: object) -> builtins.list[Data]:
    assert isinstance(given, builtins.list)
    return given
