"""Calls of seals: what tells later whether anybody rewrote a history.

Seals of histories held against what is stored: where somebody rewrote, added or took away what was sealed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

import msgspec

from standfast.calls.authorization import check_reader, check_repairer, check_unbound
from standfast.calls.context import CallContext, checked_after, checked_limit, checked_text
from standfast.calls.references import checked_instance
from standfast.engine.concurrency.replies import Reply
from standfast.features.deciders.verification import Verification, verified
from standfast.kernel.codec.codecs import Codec
from standfast.kernel.hash_chain import Replaced, Sealed, digests_of
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.store.ports.seals import StoredSeal, link_of
from standfast.store.records.instances import InstanceQuery

BATCH = 200
"""Histories that are read at once."""
_REDACTED = "document_redacted"


class SealedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of instances that were sealed."""

    sealed: int
    """How many have moved since they were sealed last, and are sealed now."""
    checked: int
    next: str | None
    """The cursor of the next stretch; None behind the last one."""


class SealCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at a stretch of the seals found."""

    checked: int
    broken: list[str]
    """Each says what is not as it was sealed; empty when all is well."""
    gone: int
    """Seals of instances that were deleted since."""
    next: int | None
    """The number behind which the next stretch begins; None behind the last one."""

    @property
    def is_sound(self) -> bool:
        """Whether all is as it was sealed."""
        return not self.broken


def replaced_in(events: Sequence[StoredEvent], codec: Codec) -> dict[int, list[Replaced]]:
    """The events that were rewritten with leave, by their numbers; a history tells that itself."""
    found: defaultdict[int, list[Replaced]] = defaultdict(list)
    for event in events:
        if event.type == _REDACTED:
            said = codec.decode(event.data, dict[str, object]).get("events", {})
            for number, (before, after) in said.items() if isinstance(said, dict) else ():
                found[int(number)].append(Replaced(str(before), str(after)))
    return dict(found)


def flaws(events: Sequence[StoredEvent], seals: Sequence[StoredSeal], codec: Codec) -> Iterator[str]:
    """Where the history of an instance is not as it was sealed, and where not as its redactions left it."""
    chain = dict[int, str]()
    for number, digest, is_kept in digests_of(events, replaced_in(events, codec)):
        chain[number] = digest
        if not is_kept:
            yield f"event {number} is not what its redaction left"
    for seal in seals:
        if seal.version not in chain:
            yield f"seal {seal.number} is about {seal.version} events, and there are {len(chain)}"
        elif chain[seal.version] != seal.digest:
            yield f"the first {seal.version} events are not those that {seal.sealed_by!r} sealed by seal {seal.number}"


def sealed(desk: CallContext, after: InstanceId | None, limit: int) -> SealedPage:
    """Seal instances behind one, newest first, as far as they have moved since they were sealed last."""
    count, checked, last = 0, 0, after
    while checked < limit:
        size = min(BATCH, limit - checked)
        headers = desk.reader.instances(InstanceQuery(before=last, limit=size))
        count += _seal(desk, {each.id: each.version for each in headers})
        checked += len(headers)
        if len(headers) < size:
            return SealedPage(sealed=count, checked=checked, next=None)
        last = headers[-1].id
    return SealedPage(sealed=count, checked=checked, next=str(last))


def _seal(desk: CallContext, versions: Mapping[InstanceId, int]) -> int:
    service, codec = desk.service, desk.registry.codec
    known = {each.instance: each.version for each in seals_of(desk, list(versions))}
    moved = [each for each, version in versions.items() if known.get(each, 0) < version]
    made = []
    for instance, events in _histories(desk, moved).items():
        *_, (number, digest, _is_kept) = digests_of(events, replaced_in(events, codec))
        made.append(Sealed(instance, number, digest))
    if made:
        now, by = service.shared.clock.now(), desk.request.actor.id
        change = desk.changed("seal", desk.tenant, "seal", after={"instances": len(made)})
        desk.record(change, lambda parts: parts.seals().add(desk.tenant, made, by=by, at=now), check=check_repairer)
    return len(made)


def seals_of(desk: CallContext, instances: Sequence[InstanceId]) -> list[StoredSeal]:
    """The seals of these instances."""
    return desk.service.survey(lambda parts: parts.seals().of(desk.tenant, instances)) if instances else []


def _histories(desk: CallContext, instances: Sequence[InstanceId]) -> dict[InstanceId, list[StoredEvent]]:
    events = (
        sorted(desk.reader.histories(instances), key=lambda each: (each.instance, each.sequence)) if instances else []
    )
    return {instance: list(several) for instance, several in groupby(events, lambda each: each.instance)}


def proved(desk: CallContext, instance: InstanceId) -> Verification:
    """What is stored of an instance held against its history, and that against its seals."""
    seals = seals_of(desk, [instance])
    with desk.reader.look() as reader:
        found = verified(reader, desk.registry, desk.address(instance=instance))
        told = flaws(reader.histories([instance]), seals, desk.registry.codec) if seals else ()
        return msgspec.structs.replace(found, differences=[*found.differences, *told])


def examined(desk: CallContext, after: int, limit: int) -> SealCheck:
    """Look at seals behind a number: whether they are a chain, and whether what they are about is as it was."""
    first = max(0, after - 1)
    found = desk.service.survey(
        lambda parts: parts.seals().listed(desk.tenant, after=first, limit=limit + after - first)
    )
    previous = found[0] if after and found and found[0].number == after else None
    page = found if previous is None else found[1:]
    broken, gone = list(_unchained(previous, page, after)), 0
    for start in range(0, len(page), BATCH):
        part = page[start : start + BATCH]
        histories = _histories(desk, list({each.instance for each in part}))
        for seal in part:
            if seal.instance in histories:
                told = flaws(histories[seal.instance], [seal], desk.registry.codec)
                broken += [f"{seal.instance}: {each}" for each in told]
            else:
                gone += 1
    return SealCheck(
        checked=len(page),
        broken=list(dict.fromkeys(broken)),
        gone=gone,
        next=page[-1].number if len(page) == limit else None,
    )


def _unchained(previous: StoredSeal | None, page: Sequence[StoredSeal], after: int) -> Iterator[str]:
    number, link = after, "" if previous is None else previous.link
    if after and previous is None and page:
        yield f"seal {after} is missing"
        return
    for seal in page:
        number += 1
        if seal.number != number:
            yield f"seal {number} is missing"
            return
        if seal.link != link_of(link, seal):
            yield f"seal {number} does not follow from the one before it"
        link = seal.link


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """That somebody has sealed the history of an instance up to an event. Its `link` stands for all seals up to it: keep that elsewhere."""

    number: int
    instance: InstanceId
    version: int
    digest: str
    link: str
    sealed_by: str
    sealed_at: datetime


class FutureSeals:
    """Seals of the tenant's histories. They are a chain that is only ever added to; those of the whole tenant, whatever its partitions."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def seal(self, *, cursor: str | None = None, limit: int = 1000) -> Reply[SealedPage]:
        """Seal a stretch of the instances, newest first: each history that has grown since it was sealed last.

        It takes the capability `execution:repair`; have it called every night, say, until `next` is None.
        """

        def act() -> SealedPage:
            check_unbound(self._desk, "seals")
            check_repairer(self._desk)
            after = None if cursor is None else checked_instance(checked_text(cursor, "cursor"))
            return sealed(self._desk, after, checked_limit(limit))

        return self._desk.read(act)

    def verify(self, *, after: int = 0, limit: int = 1000) -> Reply[SealCheck]:
        """Look at the seals behind a number: whether none is missing or was changed, and whether the histories are as they were sealed."""

        def read() -> SealCheck:
            check_unbound(self._desk, "seals")
            check_reader(self._desk)
            return examined(self._desk, checked_after(after), checked_limit(limit))

        return self._desk.read(read)

    def holds(self, number: int, link: str) -> Reply[bool]:
        """Whether the seal with a number is the one whose link was kept elsewhere: then none before it was taken away or made anew."""

        def read() -> bool:
            check_unbound(self._desk, "seals")
            check_reader(self._desk)
            found = _listed(self._desk, max(1, checked_after(number)))
            return found is not None and found.link == checked_text(link, "link")

        return self._desk.read(read)

    def head(self) -> Reply[Seal | None]:
        """The last seal; None if there is none. Whoever keeps its number and link elsewhere can tell later whether seals were taken away or made anew."""

        def read() -> Seal | None:
            check_unbound(self._desk, "seals")
            check_reader(self._desk)
            found = self._desk.service.survey(lambda parts: parts.seals().last(self._desk.tenant))
            return None if found is None else _shown(found)

        return self._desk.read(read)


def _listed(desk: CallContext, number: int) -> StoredSeal | None:
    """One seal of the tenant."""
    found = desk.service.survey(lambda parts: parts.seals().listed(desk.tenant, after=number - 1, limit=1))
    return found[0] if found and found[0].number == number else None


def _shown(seal: StoredSeal) -> Seal:
    return Seal(**{name: getattr(seal, name) for name in Seal.__struct_fields__})
