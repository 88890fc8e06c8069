"""Commit one batch of commands in one transaction, on one of two paths.

The optimistic path decides on cached or freshly read state, and writes with the version of each instance as its gate.
It takes one round trip. A refusal that rests on cached rights stands if their version is still the newest.

The locking path locks, reads, checks claims and receipts, decides and writes in one transaction. It handles what the
optimistic path cannot prove: lost races, refusals on cached state, repeated commands and commits without an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter

from standfast.engine.commit.batch import CommandBatch, Found, asking_of
from standfast.engine.commit.cache import CachedInstance, InstanceCache, folded
from standfast.engine.commit.context import DraftContext
from standfast.engine.commit.draft import InstanceDraft
from standfast.engine.commit.facts import FactBook, gates_of
from standfast.engine.commit.submission import CommandOutcome, Submission, accompany, is_same
from standfast.engine.common.clock import Clock
from standfast.engine.common.interceptors import ended
from standfast.engine.common.randomness import Randomness
from standfast.engine.common.work_errors import as_exception
from standfast.errors import (
    CommandError,
    ConflictError,
    HeldError,
    NotFoundError,
    ReusedIdError,
    StandfastError,
    StoreError,
    StoreUnavailableError,
)
from standfast.kernel.actor import SYSTEM
from standfast.kernel.ids import InstanceId
from standfast.store.ports.facts import FactVersions, Gate
from standfast.store.ports.store import LostRaceError, Transaction, Writer
from standfast.store.records.instances import Address, Claim, InstanceChange, Loaded, Receipt
from standfast.store.sql.conflicts import VoidClaimError

_ROUNDS = 8
"""Optimistic races lost in a row before the caller gets an error. Another process has won each of them."""


_FACT_ROUNDS = 16
"""Rounds in which the decisions of one commit may ask for further facts."""


class Committer:
    """Commits batches on one writer."""

    def __init__(
        self, writer: Writer, around: DraftContext, *, clock: Clock, chance: Randomness, cache: InstanceCache
    ) -> None:
        self._writer = writer
        self._around = around
        self._clock = clock
        self._chance = chance
        self._cache = cache
        self._shifts = 0
        """The number of changes to timer-moving pauses at the last eviction of timers."""

    def commit(self, submissions: Sequence[Submission], finished: Sequence[Claim]) -> CommandBatch:
        """Commit the commands, and consume the claims of work that ended without one.

        After StoreUnavailableError nothing is committed, or the outcome is unknown.
        """
        if any(each.is_uncertain or each.held_since is not None for each in submissions):
            self._writer.write([], finished=finished, now=self._clock.now())
            batch = self._carefully(submissions)
        else:
            batch = self._quickly(submissions, finished)
        while batch.doubtful:
            again, batch.doubtful = batch.doubtful, []
            batch.add(self._carefully(again))
        return batch

    # -- the optimistic path

    def _quickly(self, submissions: Sequence[Submission], finished: Sequence[Claim]) -> CommandBatch:
        book = FactBook(self._around.facts)
        batch = self._begin(book, is_careful=False)
        drafts: list[InstanceDraft] = []
        now = batch.now
        try:
            self._look_up(submissions, book, now)
            drafts = batch.decide(submissions, self._remembered(submissions), self._newest())
            used = [*finished, *(claim for draft in drafts for claim in draft.finished)]
            seen = [observation for draft in drafts for observation in draft.observations]
            changes = _changes(drafts)
            if changes or used or seen:
                gates = _gates(drafts)
                self._writer.write(changes, finished=used, observations=seen, gates=gates, now=now)
        except Exception as error:  # noqa: BLE001 - the locking path finds the command that caused it
            self._undo(drafts, finished, error)
            undone = self._begin(book, is_careful=False)
            undone.doubtful = list(submissions)
            return undone
        self._keep(drafts, batch)
        return batch

    def _look_up(self, submissions: Sequence[Submission], book: FactBook, now: datetime) -> None:
        """Read the rights of those actors whose rights are not cached."""
        for each in submissions:
            if each.request.actor is SYSTEM or each.request.actor.kind == "system":
                continue
            asking = asking_of(each)
            try:
                if book.authorised(asking, now) is None:
                    with self._writer.looking() as look:
                        self._around.facts.authorise(look, asking, now, may_remember=True)
            except StandfastError as error:  # The decision refuses the command with the same error.
                if isinstance(error, StoreUnavailableError):
                    raise

    def _newest(self) -> Callable[[Gate], bool]:
        """Return a check whether versions of facts are still the newest. It reads the versions of each tenant once."""
        known: dict[str, FactVersions] = {}

        def is_newest(gate: Gate) -> bool:
            if gate.kind == "instance":
                return False
            if gate.tenant not in known:
                with self._writer.looking() as look:
                    known[gate.tenant] = look.versions(gate.tenant)
            found = known[gate.tenant]
            return gate.version == (found.access if gate.kind == "access" else found.charters)

        return is_newest

    def _remembered(self, submissions: Sequence[Submission]) -> Found:
        if self._cache.outdated:
            self._cache.forget_outdated()
        standing = self._around.standing
        if standing.shifts != self._shifts:
            self._shifts = standing.shifts
            self._cache.forget_timers()
        found: Found = {}
        missing: dict[Address, None] = {}
        for each in submissions:
            if each.address in found:
                continue
            tracked = self._cache.find(each.address)
            if tracked is not None and not (
                standing.shifting and tracked.timers and standing.moves_timers(tracked.header)
            ):
                try:
                    tracked.free.pop()
                except IndexError:  # A handler commits to this instance at the moment.
                    missing[each.address] = None
                else:
                    found[each.address] = tracked
            else:
                missing[each.address] = None
        if missing:
            found |= self._fold(list(missing), self._writer.load(list(missing)), self._writer)
        return found

    def _undo(self, drafts: Sequence[InstanceDraft], finished: Sequence[Claim], error: Exception) -> None:
        """Discard the computed state after a failed or unanswered commit.

        Claims that ended without a command are unaffected.
        """
        self._forget(drafts)
        if isinstance(error, StoreUnavailableError):
            raise error
        if finished:
            self._writer.write([], finished=finished, now=self._clock.now())

    # -- the locking path

    def _carefully(self, submissions: Sequence[Submission]) -> CommandBatch:
        for _ in range(_ROUNDS):
            try:
                return self._locked(submissions)
            except LostRaceError as error:
                lost = error
            except StoreUnavailableError:
                raise
            except StandfastError as error:
                return self._isolated(submissions, error)
            except Exception as error:  # noqa: BLE001 - one command causes it and must fail alone
                return self._isolated(submissions, _unexpected(error))
        return self._isolated(submissions, ConflictError(f"other commits were first {_ROUNDS} times in a row: {lost}"))

    def _isolated(self, submissions: Sequence[Submission], error: StandfastError) -> CommandBatch:
        """Isolate the command that spoils the transaction by halving the batch until it is alone."""
        batch = self._begin(FactBook(self._around.facts), is_careful=True)
        if len(submissions) == 1:
            batch.refuse(submissions[0], error)
            return batch
        middle = len(submissions) // 2
        batch.add(self._carefully(submissions[:middle]))
        # A held instance may be free by now. Commands behind a refused one must not overtake it.
        held = {each.address: refusal for each, _, refusal in batch.answers if isinstance(refusal, HeldError)}
        if rest := [each for each in submissions[middle:] if each.address not in held]:
            batch.add(self._carefully(rest))
        for each in submissions[middle:]:
            if each.address in held:
                batch.refuse(each, held[each.address])
        return batch

    def _locked(self, submissions: Sequence[Submission]) -> CommandBatch:
        drafts: list[InstanceDraft] = []
        try:
            with self._writer.unit() as unit:
                addresses = list(dict.fromkeys(each.address for each in submissions))
                # A batch does not wait for a held instance, and neither does a command that was held before: it is
                # retried periodically.
                waits = len(submissions) == 1 and submissions[0].held_since is None
                batch, drafts = self._decided(
                    submissions,
                    FactBook(self._around.facts, unit.looking()),
                    lambda: self._fold(addresses, unit.load(addresses, waits=waits), unit),
                    lambda left, found, batch: self._settled_before(left, found, unit, batch),
                )
                now = batch.now
                changes = _changes(drafts)
                if changes:
                    unit.write(changes, now, gates=_gates(drafts))
                _remember(drafts, unit, now)
            used = [*batch.spent, *(claim for draft in drafts for claim in draft.finished)]
            seen = [observation for draft in drafts for observation in draft.observations]
            if used or seen:
                self._writer.write([], finished=used, observations=seen, now=now)
        except BaseException:
            self._forget(drafts)
            raise
        self._keep(drafts, batch)
        return batch

    def _decided(
        self,
        submissions: Sequence[Submission],
        book: FactBook,
        load: Callable[[], Found],
        settle: Callable[[Sequence[Submission], Found, CommandBatch], Sequence[Submission]],
    ) -> tuple[CommandBatch, list[InstanceDraft]]:
        """Decide commands on the locking path. When decisions need facts, read these and decide everything again."""
        for _ in range(_FACT_ROUNDS):
            batch = self._begin(book, is_careful=True)
            found = load()
            drafts = batch.decide(settle(submissions, found, batch), found)
            if not batch.wanted:
                return batch, drafts
            self._forget(drafts)
            if not book.fill(batch.wanted, batch.now):
                break
        asked = ", ".join(sorted({str(key) for _, key in batch.wanted}))
        told = f"a decision asks for facts that cannot be read here: {asked}; give what it needs with the command"
        raise CommandError(told, decider=submissions[0].address.definition)

    def commit_inside(
        self, unit: Transaction, submission: Submission, known: CachedInstance | None = None
    ) -> CommandBatch:
        """Commit one command inside the caller's open transaction.

        `known` is the instance that the caller owns. If its version is current, the history is not read. Raises
        VoidClaimError if another worker took over the command's work: the caller must then roll back.
        """
        if not self._around.companions.is_any:
            return self._inside(unit, submission, known)
        accompany(submission, self._around.companions)
        error: BaseException | None = None
        try:
            batch = self._inside(unit, submission, known)
            error = next((refusal for _, _, refusal in batch.answers if refusal is not None), None)
            return batch
        except BaseException as problem:
            error = problem
            raise
        finally:
            ended(submission.passages, error)

    def _inside(self, unit: Transaction, submission: Submission, known: CachedInstance | None) -> CommandBatch:
        hands = [known]  # Usable once: a decision that needs facts may corrupt it.
        batch, drafts = self._decided(
            [submission],
            FactBook(self._around.facts, unit.looking(), may_remember=False),
            lambda: self._found_inside(unit, submission.address, hands.pop() if hands else None),
            lambda left, found, batch: (
                left if submission.receipt is None else self._settled_before(left, found, unit, batch)
            ),
        )
        now = batch.now
        changes = _changes(drafts)
        if changes:  # The write consumes the claim, or the race is lost.
            unit.write(changes, now, gates=_gates(drafts))
        elif submission.claim is not None and unit.void([submission.claim]):
            raise VoidClaimError
        _remember(drafts, unit, now)
        used = [claim for draft in drafts for claim in draft.finished]
        if used:
            unit.consume(used)
        batch.observations = [observation for draft in drafts for observation in draft.observations]
        self._keep(drafts, batch)
        return batch

    def _found_inside(self, unit: Transaction, address: Address, known: CachedInstance | None) -> Found:
        """Lock the instance, and return the known state if it is current or a freshly folded one."""
        if known is None or address.instance != known.header.id or address.definition != known.header.definition:
            return self._fold([address], unit.load([address]), unit)
        loaded = unit.load([address], known=known.header.version)
        (found,) = loaded
        if found is None or found.header.version != known.header.version:
            return self._fold([address], loaded, unit)
        header = found.header
        if self._around.programs(header.tenant, header.definition, header.definition_version) is known.program:
            return {address: known.renewed(found)}
        return self._fold([address], unit.load([address]), unit)

    def look_inside(self, unit: Transaction, address: Address) -> CachedInstance | None:
        """Return an instance, locked in an open transaction, or None if there is none.

        Raises the error if the instance cannot be read.
        """
        found = self._fold([address], unit.load([address]), unit).get(address)
        if isinstance(found, StandfastError):
            raise found
        return found

    def _settled_before(
        self, submissions: Sequence[Submission], found: Found, unit: Transaction, batch: CommandBatch
    ) -> list[Submission]:
        """Settle the commands that were committed before or whose claim is void. Return the remaining ones."""
        keys = [each.receipt for each in submissions if each.receipt is not None]
        receipts = unit.receipts(keys) if keys else {}
        known = self._known_causes(submissions, found, unit)
        claims = [each.claim for each in submissions if each.claim is not None]
        void = unit.void(claims) if claims else set()
        left = []
        for each in submissions:
            tracked = found.get(each.address)
            if each.receipt is not None and each.receipt in receipts:
                receipt = receipts[each.receipt]
                if not is_same(receipt.digest, each.digest):
                    batch.refuse(each, ReusedIdError(each.receipt.key))
                    continue
                batch.accept(each, _outcome(receipt))
                batch.spent += [each.claim] if each.claim is not None and each.claim not in void else []
            elif each.cause in known and isinstance(tracked, CachedInstance):
                batch.accept(each, CommandOutcome(tracked.header.id, tracked.header.version))
            elif each.claim is not None and each.claim in void:
                batch.accept(each, CommandOutcome(None, 0, "the claim is void"))
            else:
                left.append(each)
        return left

    def _known_causes(self, submissions: Sequence[Submission], found: Found, unit: Transaction) -> set[str]:
        """Return the causes of the commands that are in the history although their commit got no answer."""
        asked: list[tuple[InstanceId, str]] = []
        for each in submissions:
            tracked = found.get(each.address)
            if each.is_uncertain and isinstance(tracked, CachedInstance):
                asked.append((tracked.header.id, each.cause))
        return unit.causes([each[0] for each in asked], [each[1] for each in asked]) if asked else set()

    # -- shared by both paths

    def _begin(self, book: FactBook, *, is_careful: bool) -> CommandBatch:
        return CommandBatch(
            self._around,
            now=self._clock.now(),
            new_id=self._chance.new_id,
            forget=self._cache.forget,
            is_careful=is_careful,
            book=book,
        )

    def _fold(
        self, addresses: Sequence[Address], loaded: Sequence[Loaded | None], source: Writer | Transaction
    ) -> Found:
        """Fold stored instances.

        An error stands for an instance that cannot be folded, so that only its own commands fail.
        """
        found: Found = {}
        for address, each in zip(addresses, loaded, strict=True):
            if each is None:
                continue
            try:
                found[address] = self._folded(address, each, source)
            except StandfastError as error:
                found[address] = error
            except BaseException as error:  # noqa: BLE001 - see above
                found[address] = _unexpected(as_exception(error))
        return found

    def _folded(self, address: Address, loaded: Loaded, source: Writer | Transaction) -> CachedInstance:
        header = loaded.header
        program = self._around.programs(header.tenant, header.definition, header.definition_version)
        if address.definition and address.definition != loaded.header.definition:
            raise NotFoundError("instance", address.instance or address.key)
        tracked = folded(loaded, program, lambda: source.load([address], whole=True)[0])
        if tracked is None:
            raise NotFoundError("instance", address.instance or address.key)
        return tracked

    def _keep(self, drafts: Sequence[InstanceDraft], batch: CommandBatch) -> None:
        for draft in drafts:
            has_changed = bool(draft.change.events)
            if has_changed:
                batch.written.append(draft)
            if draft.is_tainted:
                self._cache.forget(draft.header.id)
            elif has_changed:
                kept = draft.after()
                self._cache.keep(kept)
                batch.kept.append(kept)
            elif draft.before is not None:
                draft.before.is_fresh = False
                draft.before.timers = draft.timers
                self._cache.keep(draft.before)
                batch.kept.append(draft.before)

    def _forget(self, drafts: Sequence[InstanceDraft]) -> None:
        for draft in drafts:
            draft.give_up()
            self._cache.forget(draft.header.id)


_by_id = attrgetter("header.id.int")


def _changes(drafts: Sequence[InstanceDraft]) -> list[InstanceChange]:
    """Return the changes in the order of instance ids.

    Rows are locked in this order everywhere, which avoids deadlocks.
    """
    try:
        changes = [draft.finish() for draft in drafts if draft.change.events]
    except Exception:
        raise
    except BaseException as error:
        raise as_exception(error) from error
    changes.sort(key=_by_id)
    return changes


def _gates(drafts: Sequence[InstanceDraft]) -> Sequence[Gate]:
    """Return the gates of the facts that accepted commands were decided on. Most batches have none."""
    drafted = [
        (draft.change, (*draft.gates, *draft.facts.gates))
        for draft in drafts
        if (draft.gates or draft.facts.gates) and draft.change.events
    ]
    return gates_of(drafted) if drafted else ()


def _remember(drafts: Sequence[InstanceDraft], unit: Transaction, now: datetime) -> None:
    """Store the receipts of commands that changed nothing."""
    receipts = [each for draft in drafts if draft.is_empty for each in draft.change.receipts]
    if receipts:
        unit.remember(receipts, now)


def _unexpected(error: Exception) -> StoreError:
    told = StoreError(f"the commit failed: {error!r}")
    told.__cause__ = error
    return told


def _outcome(receipt: Receipt) -> CommandOutcome:
    return CommandOutcome(receipt.instance, receipt.version)
