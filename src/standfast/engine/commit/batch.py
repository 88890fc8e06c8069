"""Decide a batch of commands in order of arrival, each on a draft of its instance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from msgspec.structs import replace

from standfast.engine.commit.cache import CachedInstance
from standfast.engine.commit.context import DraftContext
from standfast.engine.commit.draft import InstanceDraft
from standfast.engine.commit.facts import Asking, DraftFacts, FactBook, Place
from standfast.engine.commit.instance_row import new_header
from standfast.engine.commit.submission import CommandOutcome, Submission, is_same
from standfast.engine.common.work_errors import is_interrupt
from standfast.errors import (
    CommandError,
    NotFoundError,
    PayloadError,
    RejectedError,
    ReusedIdError,
    StandfastError,
)
from standfast.kernel.actor import SYSTEM
from standfast.kernel.codec.message_types import stored_name
from standfast.kernel.facts import FactKey, FactsNeeded
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.store.ports.facts import Gate
from standfast.store.records.instances import Address, Claim, InstanceHeader, ObservationRecord, ReceiptKey
from standfast.store.sql.conflicts import VoidClaimError

Answer = tuple[Submission, CommandOutcome | None, BaseException | None]

Found = dict[Address, CachedInstance | StandfastError]
"""The instances found in the store, by address. The value is an error where the instance cannot be read."""

Name = int | Address
"""Identifies an instance within a batch: the integer form of its id, or its address if it does not exist yet."""

_VOID = CommandOutcome(None, 0, "the claim is void")
_ID_VERSION = 7


class CommandBatch:
    """Decides the commands that share one transaction, and collects their outcomes.

    The optimistic path leaves out a command whose outcome it cannot prove, and every later command on the same
    instance. Both paths leave out the commands behind a failed decision, because a failing decider may have corrupted
    the cached state.
    """

    def __init__(
        self,
        around: DraftContext,
        *,
        now: datetime,
        new_id: Callable[[datetime], UUID],
        forget: Callable[[InstanceId], None],
        is_careful: bool,
        book: FactBook,
    ) -> None:
        self.now = now
        """The time used for every decision in the batch."""
        self.answers: list[Answer] = []
        self.written: list[InstanceDraft] = []
        self.kept: list[CachedInstance] = []
        """The instances to cache. The batch owns them until all listeners have been notified of the commit."""
        self.doubtful: list[Submission] = []
        """Commands to repeat on the locking path."""
        self.spent: list[Claim] = []
        """Claims to consume because their commands were committed before."""
        self.observations: list[ObservationRecord] = []
        """Observations to write in a separate transaction, because this transaction belongs to the caller."""
        self.wanted: list[tuple[Place, FactKey]] = []
        """Facts that decisions need and that have not been read yet. The batch is invalid until they are read."""
        self._around = around
        self._book = book
        self._new_id = new_id
        self._forget = forget
        self._is_careful = is_careful
        self._drafts: dict[Name, InstanceDraft] = {}
        self._answers: dict[Name, list[Answer]] = {}
        self._doubted: set[Name] = set()
        self._judged: tuple[Gate, ...] | None = None
        """The versions of the rights that the current command was authorized with; None before authorization."""
        self._unproven: list[tuple[Name, tuple[Gate, ...]]] = []
        """Instances with outcomes that write nothing, and that are right if these versions are still the newest."""
        self._receipts: dict[ReceiptKey, tuple[Name, CommandOutcome, bytes]] = {}

    def accept(self, submission: Submission, outcome: CommandOutcome) -> None:
        """Record that the command was committed, or had nothing to do."""
        self.answers.append((submission, outcome, None))

    def refuse(self, submission: Submission, error: BaseException) -> None:
        """Record that the command failed."""
        self.answers.append((submission, None, error))

    def add(self, other: CommandBatch) -> None:
        """Merge the outcomes of a partial batch into this one."""
        self.answers += other.answers
        self.written += other.written
        self.kept += other.kept
        self.doubtful += other.doubtful

    def decide(
        self, submissions: Iterable[Submission], found: Found, is_newest: Callable[[Gate], bool] | None = None
    ) -> list[InstanceDraft]:
        """Decide commands on the instances found, and return the drafts to write.

        The outcomes are valid once the drafts are committed. On the optimistic path `is_newest` tells whether a cached
        version is still the newest, so that an outcome that writes nothing can stand.
        """
        for each in submissions:
            tracked = found.get(each.address)
            if isinstance(tracked, StandfastError):
                self.refuse(each, tracked)
            else:
                self._decide(each, tracked)
        for name, gates in self._unproven:
            if name in self._answers and (is_newest is None or not all(map(is_newest, gates))):
                self._leave(name)
        for answers in self._answers.values():
            self.answers += answers
        return list(self._drafts.values())

    def _decide(self, each: Submission, tracked: CachedInstance | None) -> None:
        name: Name = tracked.header.id.int if tracked else each.address
        if each.receipt is not None and each.receipt in self._receipts:
            # The first command with this receipt determines the instance, whatever address this one names.
            name = self._receipts[each.receipt][0]
        if self._doubted and name in self._doubted:
            self.doubtful.append(each)
            return
        try:
            answer = self._answer(each, name, tracked)
        except FactsNeeded as needed:
            self._want(each, name, needed.keys)
            return
        outcome = answer[1]
        if (outcome is None or outcome.ignored) and self._may_be_wrong(each, tracked):
            gates = self._proof_of(answer, name, tracked)
            if gates is None:
                self._doubt(each, name)
                return
            self._unproven.append((name, gates))
        before = self._answers.get(name)
        if before is None:
            self._answers[name] = [answer]
        else:
            before.append(answer)
        if outcome is None and name in self._drafts and self._drafts[name].is_tainted:
            # The state may be corrupted: decide the following commands on a freshly loaded one.
            self._doubted.add(name)

    def _answer(self, each: Submission, name: Name, tracked: CachedInstance | None) -> Answer:
        if each.receipt is not None and each.receipt in self._receipts:
            return self._repeated(each, each.receipt, name)
        self._judged = None
        try:
            gates = self._judged = () if each.request.actor is SYSTEM else self._authorise(each, tracked)
            draft = self._drafts.get(name)
            if draft is None:
                draft = self._drafts[name] = self._begin(each, tracked)
            outcome = draft.apply(each, self.now)
            draft.gates += gates
        except VoidClaimError:
            return each, _VOID, None
        except RejectedError as error:
            return each, None, error
        except FactsNeeded:
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            if name in self._drafts:
                self._drafts[name].is_tainted = True
            return each, None, error if isinstance(error, StandfastError) else _failure(each, error)
        if each.receipt is not None:
            # A repetition gets the outcome of the first command, without its view: only the first caller may see the
            # instance.
            self._receipts[each.receipt] = (name, replace(outcome, seen=None), each.digest)
        return each, outcome, None

    def _authorise(self, each: Submission, tracked: CachedInstance | None) -> tuple[Gate, ...]:
        """Return the gates that prove the actor's current rights, and apply those rights to the command.

        Raises ForbiddenError if the actor may not act.
        """
        if each.request.actor.kind == "system":
            return ()
        each.asked = each.asked or each.request
        found = self._book.authorised(asking_of(each, tracked), self.now)
        if found is None:
            raise FactsNeeded
        each.request = found.request
        return found.gates

    def _want(self, each: Submission, name: Name, keys: Sequence[FactKey]) -> None:
        """Skip an instance until the facts are read, because the decider may have corrupted its state."""
        draft = self._drafts.get(name)
        if draft is not None:
            self.wanted += [(draft.facts.place, key) for key in keys]
        self._doubt(each, name)

    def _repeated(self, each: Submission, receipt: ReceiptKey, name: Name) -> Answer:
        """Handle an id that occurs twice in one batch: repeat the first outcome for an equal command, and refuse a different one."""
        _, outcome, digest = self._receipts[receipt]
        if not is_same(digest, each.digest):
            return each, None, ReusedIdError(receipt.key)
        if each.claim is not None:
            self._drafts[name].finished = (*self._drafts[name].finished, each.claim)
        return each, outcome, None

    def _begin(self, each: Submission, tracked: CachedInstance | None) -> InstanceDraft:
        if tracked is not None:
            return self._draft(tracked.header, tracked.program, tracked)
        address = each.address
        if not (each.may_create and address.definition):
            raise NotFoundError("instance", address.instance or address.key)
        program = self._around.programs(address.tenant, address.definition, each.definition_version)
        identity = address.instance or each.identity
        if identity is not None and identity.version != _ID_VERSION:
            raise PayloadError(
                f"{identity} cannot be the id of an instance: give a UUIDv7, which tells when it was made"
            )
        identity = identity or InstanceId(self._new_id(self.now))
        return self._draft(new_header(each, identity, program, self.now), program, None)

    def _draft(self, header: InstanceHeader, program: Program, before: CachedInstance | None) -> InstanceDraft:
        facts = DraftFacts(self._book, Place(header.tenant, header.partition), self.now)
        return InstanceDraft(self._around, header, program, before, facts=facts)

    def _may_be_wrong(self, each: Submission, tracked: CachedInstance | None) -> bool:
        """Return whether an outcome without writes needs proof.

        It does if state or rights come from memory, or if the command may have been committed before.
        """
        if self._is_careful:
            return False
        return each.receipt is not None or each.asked is not None or (tracked is not None and not tracked.is_fresh)

    def _proof_of(self, answer: Answer, name: Name, tracked: CachedInstance | None) -> tuple[Gate, ...] | None:
        """Return the versions that prove an outcome that writes nothing: its state was just read, its rights and facts are cached.

        None if these versions cannot prove it.
        """
        each, _, error = answer
        is_told = error is None or isinstance(error, (RejectedError, NotFoundError))
        if not is_told or each.receipt is not None or self._judged is None or (tracked and not tracked.is_fresh):
            return None
        draft = self._drafts.get(name)
        if draft is None:
            return self._judged
        return (*self._judged, *draft.gates, *draft.facts.gates) if draft.facts.are_versioned else None

    def _doubt(self, each: Submission, name: Name) -> None:
        """Send all commands of an instance to the locking path, so that they stay in order."""
        self._leave(name)
        self.doubtful.append(each)

    def _leave(self, name: Name) -> None:
        self._doubted.add(name)
        self.doubtful += [before for before, _, _ in self._answers.pop(name, [])]
        draft = self._drafts.pop(name, None)
        if draft is not None:
            draft.give_up()
            self._forget(draft.header.id)


def asking_of(each: Submission, tracked: CachedInstance | None = None) -> Asking:
    """Build the authorization request for a command."""
    return Asking(
        request=each.asked or each.request,
        tenant=each.address.tenant,
        definition=each.address.definition if tracked is None else tracked.header.definition,
        stands_in=each.stands_in,
        vouched=each.vouched,
    )


def _failure(each: Submission, error: BaseException) -> CommandError:
    definition = each.address.definition
    try:
        said = repr(error)
    except BaseException:  # noqa: BLE001 - the error itself cannot be formatted
        said = type(error).__name__
    told = CommandError(f"{definition!r} raised {said} on {stored_name(each.command)}", decider=definition)
    told.__cause__ = error
    return told
