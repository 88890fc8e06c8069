"""Calls of approval chains: templates that questions to people are made from."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence

from standfast.calls.authorization import check_unbound
from standfast.calls.context import CallContext, checked_key, checked_name, checked_text
from standfast.calls.versioned_settings import publish_edition
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ForbiddenError, NotFoundError, PayloadError
from standfast.graph.values.approver_rules import Stage
from standfast.kernel.decision import NOT_ALLOWED
from standfast.people.approval_chains import Chain, chain_of, checked_stages, stage_bytes
from standfast.store.ports.versioned_settings import Edition

PUBLISH_CHAINS = "chains:publish"
"""The capability of whoever says in which order people are asked."""
_LAST_VERSION = 2**31 - 1


class FutureChains:
    """What can be asked of approval chains, and published. To publish takes the capability `chains:publish`."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def publish(
        self, name: str, stages: Sequence[Stage | Mapping[str, object]], *, description: str = "", reason: str = ""
    ) -> Reply[Chain]:
        """Publish a chain, as the version behind the newest one; if that one says the same, it stays the newest.

        A stage is a Stage, or a mapping such as `{"asks": ["manager"]}` or `{"asks": ["role:finance"], "agree": "n", "least": 2}`.
        Questions take the newest version when they are asked, and keep it. RejectedError for a chain without stages, or one whose
        stage asks nobody.
        """
        service, request = self._desk.service, self._desk.request
        now = service.shared.clock.now()

        def write() -> Chain:
            _check_publisher(self._desk.looked_up())
            given = Edition(
                tenant=self._desk.tenant,
                name=checked_name(name, "name of the chain"),
                version=0,
                content=self._checked(stages),
                note=checked_text(description, "description"),
                published_by=request.actor.id,
                published_at=now,
            )
            stored = publish_edition(
                self._desk, "chain", given, lambda parts: parts.chains(), reason=reason, check=_check_publisher
            )
            assert stored is not None, "it replaces whatever there is"
            return chain_of(stored)

        return self._desk.act(write)

    def _checked(self, stages: object) -> bytes:
        """The stages as they are stored; every question that is asked by the chain keeps them."""
        made = stage_bytes(checked_stages(stages))
        if len(made) > self._desk.payload_limit:
            told = f"the stages take {len(made)} bytes and the limit is {self._desk.payload_limit}: make them fewer, or ask roles"
            raise PayloadError(told)
        return made

    def get(self, name: str, version: int = 0) -> Reply[Chain]:
        """One version of a chain, the newest if none is given."""

        def read() -> Chain:
            named, wanted = checked_key(name, "name of the chain"), _checked_version(version)
            found = self._desk.service.survey(lambda parts: parts.chains().get(self._desk.tenant, named, wanted))
            if found is None:
                told = f"{named} version {wanted}" if wanted else named
                raise NotFoundError("approval chain", told, hint="`engine.chains.list` names those that there are")
            return chain_of(found)

        return self._desk.read(read)

    def list(self) -> Reply[builtins.list[Chain]]:
        """The newest version of each chain, by name."""
        return self._desk.read(lambda: [*{each.name: each for each in self._listed("")}.values()])

    def versions(self, name: str) -> Reply[builtins.list[Chain]]:
        """All versions of a chain, oldest first."""
        return self._desk.read(lambda: self._listed(checked_key(name, "name of the chain")))

    def _listed(self, name: str) -> builtins.list[Chain]:
        found = self._desk.service.survey(lambda parts: parts.chains().listed(self._desk.tenant, name=name))
        return [chain_of(each) for each in found]


def _checked_version(given: object) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= _LAST_VERSION:
        return given
    raise PayloadError(f"the version of a chain is a number from 1, not {given!r}")


def _check_publisher(desk: CallContext) -> None:
    actor = desk.request.actor
    check_unbound(desk, "chains")
    if not actor.may(PUBLISH_CHAINS):
        told = f"{actor.id!r} may not publish chains: that takes the capability {PUBLISH_CHAINS!r}"
        raise ForbiddenError(reason=NOT_ALLOWED, message=told)
