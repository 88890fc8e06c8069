"""Copy a database into another: copy all rows, verify them with the engine, close the source, open the target.

No process works on either database meanwhile. The commit that fills the target also closes it; verification opens it.
The source is closed once the target has everything, so that no work happens in both databases.
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
    """Progress of a copy: the rows of each table are copied, then compared; then instances are verified."""

    stage: Stage
    table: str
    """The table that is being copied or compared; empty while instances are verified."""
    done: int
    total: int


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a copy."""

    source: str
    target: str
    """The target; source and target are without secrets."""
    rows: dict[str, int]
    """Number of rows by table."""
    verified: int
    """Instances whose history was folded again in the target and compared with the stored rows."""
    unread: dict[str, int]
    """Instances whose history was not folded, by decider whose code is missing."""
    differences: list[str]
    """Differences between target and history that the source has too; empty when all is well."""
    left: list[str]
    """Tables of other programs in the source, which were not copied."""
    is_rehearsal: bool
    """Whether the source stays open and the target closed."""


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
    """Copy a database completely into the empty one at another URL, which is created if missing. The copy is atomic.

    Raises RejectedError, and changes nothing, while workers are alive on either database, or if the target is not
    empty. Afterwards the source is in maintenance and refuses commands, and the target is open.

    With `rehearse`, the source stays open during the copy and the target stays in maintenance. With `verify`, every
    history of `deciders` and of published workflows is folded again in the target. `codec` is needed where the source
    uses a custom one. `hear` receives the progress.
    """
    with closing(open_copyable(source, is_source=True)) as original:
        codec = _checked(original, may_work=rehearse, codec=codec, must_read=verify)
        with closing(open_copyable(target, is_source=False)) as blank:
            blank.bring_up(may_migrate=True)
            check_apart(original, blank)
            move = _Move(original, blank, codec=codec, deciders=deciders, hear=_teller(hear))
            return move.carry_out((source, target), rehearse=rehearse, verify=verify)


def _teller(hear: Callable[[CopyProgress], None] | None) -> Hear:
    """Report progress to the caller, if a callback was passed."""

    def tell(progress: Progress) -> None:
        if hear is not None:
            hear(CopyProgress(**progress._asdict()))

    return tell


def _checked(source: Copyable, *, may_work: bool, codec: Codec | None, must_read: bool) -> Codec:
    """Return the codec of the source after all checks of the source, before a target exists."""
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
    """Return the source of an unverified copy in a database, and the target of a complete one; empty if neither exists."""
    origin, place = engine.service.survey(lambda parts: [parts.keeper().noted(each) for each in ("copying", "copied")])
    return origin, place


class _Move:
    """One copy, from the checks to the end."""

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
        """Copy, verify, close the source and open the target."""
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
        """Copy while the source is in maintenance. The source refuses commands from then on, unless the block fails."""
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
        """Reopen the source after an error. Where that fails, the error says what to do."""
        try:
            with self._source.writing() as original:
                original.note(reopened(maintenance))
        except StandfastError as other:
            error.add_note(
                f"{self._source.url} is still closed ({other}): `standfast maintenance end` there lets it go on"
            )

    def _proved(self, urls: tuple[str, str], transfer: Transfer) -> _Proof:
        """Verify the target with the engine; CorruptHistoryError for a difference that the source did not have."""
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
    """The result of verifying the target."""

    def __init__(self) -> None:
        self.verified = 0
        self.unread: dict[str, int] = {}
        self.differences: list[str] = []
        self.unsound: list[tuple[str, InstanceHeader | None]] = []
        """Tenants with the instances that differ; None stands for the seals of a tenant."""

    def gather(self, engine: Engine, transfer: Transfer, hear: Hear) -> None:
        """Verify every instance of every tenant, and the seals."""
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
        """Iterate over the instances of a tenant whose code is here, newest first."""
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
    """Return the problems of an instance: row, history, seals and rules of documents; or of a tenant's seals."""
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
    except StandfastError as error:  # Report a history that this code cannot read, and go on with the next one.
        yield f"{header.id}: {error}"
