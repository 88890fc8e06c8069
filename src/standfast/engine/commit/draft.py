"""Draft of a commit: applies commands to the state of one instance and collects the rows to write.

No I/O happens here. A rejected or failing command leaves the draft unchanged, so that the other commands of the batch
are unaffected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from standfast.engine.commit.cache import NO_SNAPSHOTS, CachedInstance
from standfast.engine.commit.context import DraftContext
from standfast.engine.commit.facts import DraftFacts, Vouched, VouchedFacts
from standfast.engine.commit.fairness import AT_ONCE
from standfast.engine.commit.instance_row import are_marked_otherwise, merged_search, moved_header
from standfast.engine.commit.limits import UNNAMED, check_decision, check_text
from standfast.engine.commit.submission import CommandOutcome, Submission
from standfast.engine.commit.work_rows import ExtraWork, effect_row, rest_of, restored_timer, timer_row
from standfast.engine.common.pauses import holds_call, holds_timers
from standfast.errors import ForbiddenError, PayloadError, RejectedError
from standfast.kernel.actor import OWN, context_bytes
from standfast.kernel.codec.message_types import Encoded, stored_name
from standfast.kernel.decision import NOT_ALLOWED, Decision, Effect, Ignored, Rejection, Timer
from standfast.kernel.facts import Facts
from standfast.kernel.history import DIRECTORY_ANSWERED, TIMER_CANCELLED, TIMER_REQUEUED, StoredEvent
from standfast.kernel.moment import NO_TIMERS, Moment
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.steps import has_begun, taken
from standfast.kernel.rows import merge
from standfast.store.ports.facts import Gate
from standfast.store.ports.pauses import OF_INSTANTS
from standfast.store.records.instances import (
    Claim,
    DeadLetterRecord,
    EffectClaim,
    InstanceChange,
    InstanceHeader,
    LetterClaim,
    ObservationRecord,
    PendingTimerRecord,
    Receipt,
    Snapshot,
    StoredRecall,
    StoredTimer,
    TimerClaim,
)
from standfast.store.sql.conflicts import VoidClaimError


class InstanceDraft:
    """The changes of one commit to one instance."""

    __slots__ = (
        "_around",
        "before",
        "change",
        "ends",
        "facts",
        "finished",
        "gates",
        "header",
        "is_tainted",
        "observations",
        "pauses",
        "program",
        "state",
        "timers",
    )

    def __init__(
        self,
        around: DraftContext,
        header: InstanceHeader,
        program: Program,
        before: CachedInstance | None,
        *,
        facts: DraftFacts,
    ) -> None:
        self._around = around
        self.facts = facts
        self.gates: tuple[Gate, ...] = ()
        """The gates behind the rights of the actors whose commands were accepted."""
        self.program = program
        self.before = before
        self.header = header
        """The row after the commit."""
        self.state = before.state if before else program.initial()
        self.timers = dict(before.timers) if before else {}
        self.change = InstanceChange(header=header, expected=header.version)
        self.finished: Sequence[Claim] = ()
        """Claims that are consumed without a change."""
        self.observations: Sequence[ObservationRecord] = ()
        self.ends = False
        """Whether the change ends the instance."""
        self.pauses = False
        """Whether the change pauses the instance."""
        self.is_tainted = False
        """Whether the decider failed on the state. A state that it may have corrupted is not cached."""

    def apply(self, submission: Submission, now: datetime) -> CommandOutcome:
        """Decide one command and add its changes. A refused or failing command raises and adds nothing."""
        fired = ""
        if submission.claim is not None:
            self._check_claim(submission.claim)
            if type(submission.claim) is LetterClaim:
                return self._restore_timer(submission, now)
            if type(submission.claim) is TimerClaim and not submission.claim.key.startswith(UNNAMED):
                fired = submission.claim.key
        header = self.header
        if submission.is_own:
            self.program.check_own(
                submission.command, header.key, f"the failure command of {self.program.type!r} for an effect"
            )
        moment = Moment(
            now=now,
            instance=header.id,
            key=header.key,
            tenant=header.tenant,
            partition=header.partition,
            actor=submission.request.actor,
            comment=submission.comment,
            version=header.version,
            issued=header.issued,
            commits=header.commits,
            pending_timers=NO_TIMERS if not self.timers else self._pending(fired, now),
            is_shifting=bool(self._around.standing.shifting) and self._around.standing.moves_timers(header),
            is_held=bool(self._around.standing.pauses) and bool(holds_timers(self._around.standing.over(header))),
            fired_timer=fired,
            fired_due_at=self.timers[fired].due_at if fired else None,
            asked=submission.asked or submission.request,
            facts=self._facts_for(submission.vouched),
        )
        answer = self.program.answer(self.state, submission.command, moment)
        if isinstance(answer, Decision):
            outcome = self._accept(answer, submission, now)
            view = submission.view
            if view is None:
                return outcome
            return CommandOutcome(outcome.instance, outcome.version, seen=view(self.header, self.program, self.state))
        if isinstance(answer, Rejection):
            refused = ForbiddenError if answer.code == NOT_ALLOWED else RejectedError
            raise refused(reason=answer.code, message=answer.message)
        return self._skip(answer, submission, now)

    def _facts_for(self, vouched: Vouched | None) -> Facts:
        return VouchedFacts(self.facts, vouched.people) if vouched is not None and vouched.people else self.facts

    @property
    def is_empty(self) -> bool:
        """Whether the instance stays unchanged."""
        return not self.change.events

    def finish(self) -> InstanceChange:
        """Return the change to write."""
        change = self.change
        change.header = self.header
        self._compare_status()
        if len(change.records) > 1:
            change.records = merge(change.records)
        change.snapshot = self._snapshot()
        return change

    def after(self) -> CachedInstance:
        """Return the tracked instance, updated to its state after the commit."""
        change = self.change
        tracked = self.before or CachedInstance(self.header, self.program, self.state, self.timers)
        if change.snapshot is not None:
            tracked.events_since = tracked.bytes_since = 0
            tracked.snapshot_bytes = len(change.snapshot.data)
        else:
            tracked.events_since += len(change.events)
            tracked.bytes_since += _size(change.events)
        tracked.header, tracked.state, tracked.timers = self.header, self.state, self.timers
        tracked.is_fresh = False
        return tracked

    def give_up(self) -> None:
        """Release the slots reserved for this change, because it will not be written."""
        lessee = self._around.lessee
        if lessee is not None:
            for effect in self.change.effects:
                if effect.owner is not None:
                    lessee.release(effect.handler)

    def _pending(self, fired: str, now: datetime) -> Mapping[str, datetime]:
        """Return the timers visible to a decision: those it can cancel, without the one that has just fired."""
        due = self._around.standing.due(self.header, self.program.language, self.timers, now)
        return {key: at for key, at in due.items() if key != fired and not key.startswith(UNNAMED)}

    def _check_claim(self, claim: Claim) -> None:
        """Raise if an earlier command of the same batch has voided the claim."""
        if isinstance(claim, TimerClaim):
            timer = self.timers.get(claim.key)
            if timer is None or timer.number != claim.number:
                raise VoidClaimError
        elif isinstance(claim, EffectClaim) and self.change.events and self._is_spent(claim):
            raise VoidClaimError

    def _is_spent(self, claim: EffectClaim) -> bool:
        change = self.change
        return claim.instance == self.header.id and (claim.number in change.withdrawn or claim in change.consumed)

    def _accept(self, decision: Decision, submission: Submission, now: datetime) -> CommandOutcome:
        program, header, change = self.program, self.header, self.change
        effects = [program.effects.encode(effect.body) for effect in decision.effects]
        rest = rest_of(decision, program, header, trace=submission.request.trace, programs=self._around.programs)
        check_decision(decision, now)
        if decision.records and not program.trusts_records:
            program.check_records(decision.records)
        search = merged_search(header.search, decision.attributes) if decision.attributes else header.search
        events, state = self._evolved(decision)
        status = program.status(state)
        if status.reason:
            check_text(status.reason, "reason of a status")
        if not header.version and (subject := program.subject(state)):
            header = msgspec.structs.replace(header, started_by=subject)
        # Nothing below can fail, so the draft is updated completely or not at all.
        self.state = state
        if submission.claim is not None:
            self._use_up(submission.claim)
        if effects:
            self._issue(decision.effects, effects, submission, now)
        events += self._own_events(decision, rest, submission, now)
        if self.timers and status.is_terminal:
            self._cancel_timers(tuple(self.timers))
        self._append(events, submission, now)
        if decision.records:
            at = submission.taken_at
            change.records = (*change.records, *(decision.records if at is None else taken(decision.records, at)))
        version, issued = header.version + len(events), header.issued + len(effects) + len(decision.timers)
        begun = header.begun or self._begins(decision)
        self.header = moved_header(
            header,
            status,
            version=version,
            issued=issued,
            begun=begun,
            deadline_at=self._deadline(decision, now) if rest or header.deadline_at else None,
            search=search,
            now=now,
        )
        if submission.receipt is not None:
            change.receipts = (*change.receipts, Receipt(submission.receipt, header.id, version, submission.digest))
        if self._around.observe:
            self._observe(submission, header, skipped=False, now=now)
        return CommandOutcome(header.id, version)

    def _evolved(self, decision: Decision) -> tuple[list[Encoded], object]:
        """Return the encoded events and the state after them.

        The state is folded from the decoded events, as in a replay.
        """
        words, state = self.program.events, self.program.carried_state(decision)
        if state is not msgspec.UNSET:
            return [words.encode(event) for event in decision.events], state
        written, kept = [], []
        for event in decision.events:
            encoded, own = words.keep(event)
            written.append(encoded)
            kept.append(own)
        return written, self.program.apply(self.state, kept)

    def _begins(self, decision: Decision) -> bool:
        """Return whether work on the instance has begun, with this decision or before it."""
        return any(each.owner is not None for each in self.change.effects) or any(map(has_begun, decision.records))

    def _deadline(self, decision: Decision, now: datetime) -> datetime | None:
        """Return the time at which the instance's deadline timer is due, if its program sets one."""
        key = self.program.deadline_timer
        if not key or key not in self.timers:
            return None
        return next((each.due(now) for each in decision.timers if each.key == key), self.header.deadline_at)

    def _own_events(
        self, decision: Decision, rest: ExtraWork | None, submission: Submission, now: datetime
    ) -> list[Encoded]:
        """Add the extra work to the change, and return the kernel's own events for the decision."""
        told = [] if rest is None else self._take_rest(decision, rest, now)
        if submission.vouched is not None and decision.events:
            told.append(_answered(submission.vouched))
        return told

    def _take_rest(self, decision: Decision, rest: ExtraWork, now: datetime) -> list[Encoded]:
        """Add the extra work to the change, and return the events for cancelled timers."""
        events = self._cancel_timers(decision.cancelled_timers)
        self._set_timers(decision.timers, rest, self.header.issued + len(decision.effects), now)
        self._withdraw(decision.withdrawn_effects)
        for recall in rest.recalls:
            self._recall(recall)
        self.change.messages = [*self.change.messages, *rest.messages]
        return events

    def _skip(self, answer: Ignored, submission: Submission, now: datetime) -> CommandOutcome:
        if submission.claim is not None:
            self.finished = (*self.finished, submission.claim)
            self._stop_timer(submission.claim)
        if self._around.observe and self.header.version:
            self._observe(submission, self.header, skipped=True, now=now)
        identity, version = self.header.id if self.header.version else None, self.header.version
        # A repetition of the command must not act if there is something to do by then.
        if submission.receipt is not None:
            kept = Receipt(submission.receipt, identity, version, submission.digest)
            self.change.receipts = (*self.change.receipts, kept)
        return CommandOutcome(identity, version, answer.reason or "nothing to do")

    def _restore_timer(self, submission: Submission, now: datetime) -> CommandOutcome:
        """Restore a dead-lettered timer, due immediately. The history records it, so that all caches notice."""
        letter, header, claim = submission.command, self.header, submission.claim
        assert isinstance(letter, DeadLetterRecord)
        assert claim is not None
        if letter.name in self.timers or header.ended_at is not None:
            self.finished = (*self.finished, claim)
            return CommandOutcome(header.id, header.version, "a newer timer has its key, or the instance has ended")
        self._use_up(claim)
        self.timers[letter.name] = PendingTimerRecord(letter.number, now)
        self._add_timers((restored_timer(header, letter, now),), now)
        self._append([_told(TIMER_REQUEUED, letter.name)], submission, now)
        self.header = replace(header, version=header.version + 1, commits=header.commits + 1, updated_at=now)
        return CommandOutcome(header.id, self.header.version)

    def _append(self, events: list[Encoded], submission: Submission, now: datetime) -> None:
        header, change, request = self.header, self.change, submission.request
        actor, trace = request.actor, request.trace
        new = [
            StoredEvent(
                instance=header.id,
                sequence=sequence,
                type=encoded.type,
                version=encoded.version,
                data=encoded.data,
                at=now,
                actor=actor.id,
                comment=submission.comment,
                cause=submission.cause,
                tenant=header.tenant,
                on_behalf_of=actor.on_behalf_of,
                trace=trace,
            )
            for sequence, encoded in enumerate(events, start=header.version + 1)
        ]
        change.events = [*change.events, *new] if change.events else new

    def _issue(
        self, effects: Sequence[Effect], bodies: Sequence[Encoded], submission: Submission, now: datetime
    ) -> None:
        header, change, around, program = self.header, self.change, self._around, self.program
        lessee, request, partition = around.lessee, submission.request, header.partition
        context = None
        if request is not OWN or partition:
            context = context_bytes(actor=request.actor, trace=request.trace, partition=partition)
        pauses = around.standing.pauses and around.standing.over(header)
        new = []
        for number, (effect, encoded) in enumerate(zip(effects, bodies, strict=True), start=header.issued):
            handler = effect.handler or program.type
            is_held = bool(pauses) and holds_call(pauses, program.step_of(effect.body))
            if is_held:
                change.held_effects = (*change.held_effects, number)
            late = AT_ONCE if around.shares is None else around.shares.take(header.tenant, now)
            may_lease = not is_held and not effect.delay and not late
            owner = lessee.identity if lessee and may_lease and lessee.reserve(handler) else None
            new.append(
                effect_row(
                    header,
                    effect,
                    encoded,
                    program=program,
                    number=number,
                    owner=owner,
                    context=context,
                    now=now,
                    ageing=around.ageing,
                    late=late,
                )
            )
        change.effects = [*change.effects, *new] if change.effects else new

    def _withdraw(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            if not self._drop_effect(number):
                self._forget_recall(number)
                self.change.withdrawn = (*self.change.withdrawn, number)

    def _recall(self, recall: StoredRecall) -> None:
        """Recall an effect.

        An effect that is not written yet is dropped. One that has ended or is unwanted needs nothing.
        """
        change, number = self.change, recall.number
        if self._drop_effect(number):
            change.messages = [*change.messages, recall.message]
        elif number not in change.withdrawn and not any(
            isinstance(claim, EffectClaim) and claim.instance == self.header.id and claim.number == number
            for claim in change.consumed
        ):
            before = self._forget_recall(number)
            # The first of two commands recalls the effect. Each of them may ask the handler to stop.
            both = recall if before is None else replace(before, stop=before.stop or recall.stop)
            change.recalls = (*change.recalls, both)

    def _forget_recall(self, number: int) -> StoredRecall | None:
        recalls = self.change.recalls
        found = next((each for each in recalls if each.number == number), None) if recalls else None
        if found is not None:
            self.change.recalls = [each for each in recalls if each is not found]
        return found

    def _drop_effect(self, number: int) -> bool:
        """Drop an effect that this change itself creates. Return False if the change does not contain it."""
        dropped = next((each for each in self.change.effects if each.number == number), None)
        if dropped is None:
            return False
        self.change.effects = [each for each in self.change.effects if each is not dropped]
        if dropped.owner is not None and self._around.lessee:
            self._around.lessee.release(dropped.handler)
        return True

    def _set_timers(self, timers: Sequence[Timer], rest: ExtraWork, first: int, now: datetime) -> None:
        new = {}
        for number, (timer, encoded) in enumerate(zip(timers, rest.timers, strict=True), start=first):
            key = timer.key or f"{UNNAMED}{number}"
            if key not in new:
                self._drop_timer(key)
            row = new[key] = timer_row(
                self.header,
                timer,
                encoded,
                language=self.program.language,
                key=key,
                number=number,
                context=rest.context,
                now=now,
            )
            self.timers[key] = PendingTimerRecord(number, row.due_at)
        self._add_timers(new.values(), now)

    def _add_timers(self, timers: Collection[StoredTimer], now: datetime) -> None:
        change, standing = self.change, self._around.standing
        change.timers = [*change.timers, *timers]
        pauses = holds_timers(standing.over(self.header)) if standing.pauses else ()
        if pauses:
            stops = any(each.clock == "stand_still" for each in pauses)
            for each in timers:
                is_frozen = stops and (each.language, each.key) not in OF_INSTANTS
                change.held_timers = (*change.held_timers, (each.key, is_frozen))
                if is_frozen:
                    self.timers[each.key] = self.timers[each.key]._replace(frozen_at=now)

    def _cancel_timers(self, keys: tuple[str, ...]) -> list[Encoded]:
        """Drop pending timers, and return the events that record it."""
        pending = [key for key in dict.fromkeys(keys) if key in self.timers]
        for key in pending:
            self._drop_timer(key)
        return [_told(TIMER_CANCELLED, key) for key in pending]

    def _drop_timer(self, key: str) -> None:
        dropped = self.timers.pop(key, None)
        if dropped is None:
            return
        change = self.change
        left = [timer for timer in change.timers if timer.number != dropped.number]
        if len(left) < len(change.timers):
            change.timers = left
        else:
            change.cancelled = (*change.cancelled, key)

    def _use_up(self, claim: Claim) -> None:
        self.change.consumed = (*self.change.consumed, claim)
        self._stop_timer(claim)
        if self.change.recalls and isinstance(claim, EffectClaim) and claim.instance == self.header.id:
            self._forget_recall(claim.number)

    def _stop_timer(self, claim: Claim) -> None:
        """Remove a fired timer from the pending ones."""
        if isinstance(claim, TimerClaim):
            self.timers.pop(claim.key, None)

    def _observe(self, submission: Submission, before: InstanceHeader, *, skipped: bool, now: datetime) -> None:
        header = self.header
        seen = ObservationRecord(
            tenant=header.tenant,
            instance=header.id,
            definition=header.definition,
            input=stored_name(submission.command),
            from_status=_word(before) if before.version else "",
            to_status=_word(header),
            skipped=skipped,
            at=now,
        )
        self.observations = (*self.observations, seen)

    def _snapshot(self) -> Snapshot | None:
        """Return a snapshot if the events since the last one outweigh it.

        This bounds the cost of loading long histories.
        """
        if self.is_tainted:
            return None
        before = self.before
        kept = before.snapshot_bytes if before else 0
        if self._events_since() < self._around.snapshot_events or kept == NO_SNAPSHOTS or self._bytes_since() < kept:
            return None
        try:
            data = self.program.snapshot(self.state)
        except PayloadError as error:
            self._around.warn_of_snapshots(self.program.type, error)
            if before:
                before.snapshot_bytes = NO_SNAPSHOTS
            return None
        program = self.program
        return Snapshot(
            version=self.header.version,
            state_version=program.state_version,
            data=data,
            fingerprint=program.fingerprint,
        )

    def _compare_status(self) -> None:
        """Compare the status before and after the change."""
        old, new = self.before.header if self.before else None, self.header
        if old is not None and old.status == new.status and old.reason == new.reason and old.begun == new.begun:
            self.change.keeps_status = old.ended_at == new.ended_at
        self.change.moves_marks = old is not None and are_marked_otherwise(old, new)
        self.ends = new.ended_at is not None and (old is None or old.ended_at is None)
        self.pauses = new.paused_at is not None and (old is None or old.paused_at is None)

    def _events_since(self) -> int:
        return len(self.change.events) + (self.before.events_since if self.before else 0)

    def _bytes_since(self) -> int:
        return _size(self.change.events) + (self.before.bytes_since if self.before else 0)


def _told(type_: str, key: str) -> Encoded:
    """Build the kernel's event about a timer."""
    return Encoded(type_, 1, msgspec.json.encode({"key": key}))


def _answered(vouched: Vouched) -> Encoded:
    """Build the event that records the directory's answer about the actor and about other people."""
    told: dict[str, object] = {"directory": vouched.directory, "at": vouched.at, "roles": sorted(vouched.roles)}
    if vouched.people:
        told["people"] = [
            {"id": each.id, "is_active": each.is_active, "roles": sorted(each.roles)} for each in vouched.people
        ]
    return Encoded(DIRECTORY_ANSWERED, 1, msgspec.json.encode(told))


def _size(events: Sequence[StoredEvent]) -> int:
    size = 0
    for event in events:
        size += len(event.data)
    return size


def _word(header: InstanceHeader) -> str:
    """Return the decider's name for the instance's state: the reason of the status, or else the status itself."""
    return header.reason or header.status
