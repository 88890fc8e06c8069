"""Moving to another database: everything is copied, proved by the engine itself, and then the old place is closed and the new one opened.

While that goes on nobody works on either. The target is closed by the very commit that fills it, and opened when it is verified; the source
is closed when the target has everything, so that nothing can be done in both places.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from typing import Any, Final

import msgspec

from standfast.app.api.sync import Calls
from standfast.app.engine import Engine
from standfast.errors import ConfigurationError, CorruptHistoryError, NotFoundError, StandfastError
from standfast.graph.document_checks import ENVELOPE
from standfast.kernel.codec.codecs import Codec, JsonCodec, MessagePackCodec
from standfast.kernel.decider import Decider
from standfast.store.copy.copy import (
    MAINTENANCE,
    Transfer,
    check_apart,
    check_source,
    check_still,
    closed,
    codec_of,
    copy_tables,
    facts_of,
    opened,
    reopened,
)
from standfast.store.copy.port import Copyable, Hear, Progress, Stage
from standfast.store.opening import open_copyable
from standfast.store.records.instances import InstanceHeader, InstanceQuery

_CODECS: Final[dict[str, Callable[[], Codec]]] = {JsonCodec.name: JsonCodec, MessagePackCodec.name: MessagePackCodec}
_STRETCH: Final = 200
_MOST_TOLD: Final = 20


class CopyProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a copy is: rows of one table after the other are copied, then compared; then instances are verified."""

    stage: Stage
    table: str
    """The table that is copied or compared; empty while instances are verified."""
    done: int
    total: int


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What was copied from one database into another."""

    source: str
    target: str
    """Both without any secret."""
    rows: dict[str, int]
    """How many, by their tables."""
    verified: int
    """Instances whose history was folded again in the target, and held against what is stored there."""
    unread: dict[str, int]
    """Instances whose history was not folded, by the deciders whose code was not given."""
    differences: list[str]
    """What differs from its history in the target exactly as it did in the source; empty when all is well."""
    left: list[str]
    """Tables of somebody else in the source, which were not copied."""
    is_rehearsal: bool
    """Whether the source goes on, and the target is closed."""


def copy_database(
    source: str,
    target: str,
    *,
    rehearse: bool = False,
    verify: bool = True,
    codec: Codec | None = None,
    deciders: Sequence[Decider[Any, Any, Any, Any]] = (),
    hear: Callable[[CopyProgress], None] | None = None,
) -> Copied:
    """Copy everything of the database at one URL into the empty one at another, which is made if it is not there; whole, or not at all.

    RejectedError, and nothing is done, while workers are alive on either, and if the target is not empty. Afterwards the source is in
    maintenance and refuses commands, and the target goes on with everything. `rehearse` copies from under those who work: the source goes
    on, and the target stays in maintenance. With `verify` every history is folded again in the target; those of `deciders`, and of
    whatever is published. `codec` is needed where the source is written with one of your own. `hear` is told how far it is.
    """
    with closing(open_copyable(source, is_source=True)) as original:
        codec = _checked(original, may_work=rehearse, codec=codec, must_read=verify)
        with closing(open_copyable(target, is_source=False)) as blank:
            blank.bring_up(may_migrate=True)
            check_apart(original, blank)
            move = _Move(original, blank, codec=codec, deciders=deciders, hear=_teller(hear))
            return move.carry_out((source, target), rehearse=rehearse, verify=verify)


def _teller(hear: Callable[[CopyProgress], None] | None) -> Hear:
    """What tells the caller how far it is, if he wants to know."""

    def tell(progress: Progress) -> None:
        if hear is not None:
            hear(CopyProgress(**progress._asdict()))

    return tell


def _checked(source: Copyable, *, may_work: bool, codec: Codec | None, must_read: bool) -> Codec:
    """The codec of the source, once it is known that nothing there speaks against copying it; before there is a target."""
    source.bring_up(may_migrate=False)
    with source.reading() as tables:
        check_source(tables, may_work=may_work)
        name = codec_of(tables)
    if codec is not None and codec.name != name:
        raise ConfigurationError(f"{source.url} is written with the {name!r} codec; give that one, not {codec.name!r}")
    if codec is None and name not in _CODECS and must_read:
        raise ConfigurationError(
            f"{source.url} is written with the codec {name!r}, which is code of yours: call copy_database(…, codec=…), "
            "or leave out the verification"
        )
    return codec or _CODECS.get(name, JsonCodec)()


def copies_of(engine: Engine) -> tuple[str, str]:
    """From where a database has a copy that was not verified to its end, and where everything of it was copied to; empty if neither."""
    origin, place = engine.service.survey(lambda parts: [parts.keeper().noted(each) for each in ("copying", "copied")])
    return origin, place


class _Move:
    """One copy, from its checks to its end."""

    def __init__(
        self,
        source: Copyable,
        target: Copyable,
        *,
        codec: Codec,
        deciders: Sequence[Decider[Any, Any, Any, Any]],
        hear: Hear,
    ) -> None:
        self._source = source
        self._target = target
        self._codec = codec
        self._deciders = deciders
        self._hear = hear

    def carry_out(self, urls: tuple[str, str], *, rehearse: bool, verify: bool) -> Copied:
        """Copy, prove, close and open."""
        with self._held(rehearse=rehearse) as transfer:
            proof = self._proved(urls, transfer) if verify else _Proof()
        with self._target.writing() as tables:
            tables.note(opened(is_closed=rehearse))
        return Copied(
            source=self._source.url,
            target=self._target.url,
            rows=transfer.rows,
            verified=proof.verified,
            unread=proof.unread,
            differences=proof.differences,
            left=transfer.others,
            is_rehearsal=rehearse,
        )

    @contextmanager
    def _held(self, *, rehearse: bool) -> Iterator[Transfer]:
        """Copy while the source stands still. From then on it refuses commands, unless what is done in the block fails."""
        if rehearse:
            with self._source.reading() as original, self._target.writing() as blank:
                transfer = copy_tables(original, blank, identity=secrets.token_hex(16), hear=self._hear)
            yield transfer
            return
        with self._source.writing() as original, self._target.writing() as blank:
            check_source(original, may_work=False)
            before = facts_of(original).get(MAINTENANCE, "")
            transfer = copy_tables(original, blank, identity=secrets.token_hex(16), hear=self._hear)
            original.note(closed(self._target))
        try:
            yield transfer
            with self._source.reading() as original:
                check_still(original, transfer, self._target)
        except BaseException as error:
            self._reopen(before, error)
            raise

    def _reopen(self, maintenance: str, error: BaseException) -> None:
        """Have the source go on as before, because of an error; where that cannot be done, the error says what to do."""
        try:
            with self._source.writing() as original:
                original.note(reopened(maintenance))
        except StandfastError as other:
            error.add_note(
                f"{self._source.url} is still closed ({other}): `standfast maintenance end` there lets it go on"
            )

    def _proved(self, urls: tuple[str, str], transfer: Transfer) -> _Proof:
        """The target as the engine sees it; CorruptHistoryError if anything differs from its history there and did not in the source."""
        with self._engine(urls[1]) as engine:
            proof = _Proof()
            proof.gather(engine, transfer, self._hear)
        if proof.unsound:
            with self._engine(urls[0]) as engine:
                known = {told for tenant, each in proof.unsound for told in _findings(engine.as_tenant(tenant), each)}
            if new := [each for each in proof.differences if each not in known]:
                raise CorruptHistoryError(
                    f"{self._target.url} differs from its histories where {self._source.url} does not: "
                    f"{'; '.join(new[:_MOST_TOLD])}; it stays closed: report this, and go on with the source"
                )
        return proof

    @contextmanager
    def _engine(self, url: str) -> Iterator[Engine]:
        engine = Engine(url, codec=self._codec, migrate=False, threads=False)
        try:
            for each in self._deciders:
                engine.register(each)
            yield engine
        finally:
            engine.stop()


class _Proof:
    """What the engine found in the target."""

    def __init__(self) -> None:
        self.verified = 0
        self.unread: dict[str, int] = {}
        self.differences: list[str] = []
        self.unsound: list[tuple[str, InstanceHeader | None]] = []
        """Tenants with the instances that differ; None stands for the seals of a tenant."""

    def gather(self, engine: Engine, transfer: Transfer, hear: Hear) -> None:
        """Look at every instance of every tenant, and at the seals."""
        total = transfer.rows["instances"]
        hear(Progress("verify", "", 0, total))
        for tenant in transfer.tenants:
            calls = engine.as_tenant(tenant)
            for header in chain(self._known(engine, tenant), (None,)):
                if found := list(_findings(calls, header)):
                    self.unsound.append((tenant, header))
                    self.differences += found
                if header is not None:
                    self.verified += 1
                    if self.verified % _STRETCH == 0:
                        hear(Progress("verify", "", self._seen, total))
        hear(Progress("verify", "", self._seen, total))

    @property
    def _seen(self) -> int:
        return self.verified + sum(self.unread.values())

    def _known(self, engine: Engine, tenant: str) -> Iterator[InstanceHeader]:
        """Every instance of a tenant whose code is here, newest first."""
        reader, last = engine.service.store.reader(tenant), None
        while True:
            page = reader.instances(InstanceQuery(before=last, limit=_STRETCH))
            for each in page:
                if _is_known(engine, each):
                    yield each
                else:
                    self.unread[each.definition] = self.unread.get(each.definition, 0) + 1
            if len(page) < _STRETCH:
                return
            last = page[-1].id


def _is_known(engine: Engine, header: InstanceHeader) -> bool:
    try:
        engine.registry.get(header.tenant, header.definition, header.definition_version)
    except NotFoundError:
        return False
    return True


def _findings(calls: Calls, header: InstanceHeader | None) -> Iterator[str]:
    """What is wrong with an instance: with its row, its history, its seals, and the rules of documents; or with the seals of a tenant."""
    if header is None:
        after: int | None = 0
        while after is not None:
            page = calls.seals.verify(after=after)
            yield from page.broken
            after = page.next
        return
    try:
        for told in calls.instances.verify(header.id).differences:
            yield f"{header.id}: {told}"
        for each in calls.invariants.of(header.id) if header.kind == ENVELOPE else ():
            yield f"{header.id}: {each.rule} {each.told}"
    except StandfastError as error:  # A history that this code cannot read is told, and the next one is looked at.
        yield f"{header.id}: {error}"
