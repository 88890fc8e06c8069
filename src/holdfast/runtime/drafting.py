"""Computing a commit: commands applied to the state of an instance one after the other, and the rows that result.

No I/O happens here. A command that is rejected, or on which the decider fails, leaves its draft as it was, so that its neighbours in
the same batch do not notice.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from holdfast.errors import RejectedError
from holdfast.kernel.decision import Decision, Effect, Ignored, Rejection, Timer
from holdfast.kernel.history import TIMER_CANCELLED, StoredEvent
from holdfast.kernel.moment import Moment
from holdfast.kernel.program import Program, Programs
from holdfast.kernel.records import merge
from holdfast.kernel.vocabulary import Encoded
from holdfast.runtime.checking import check_decision, check_text
from holdfast.runtime.heading import moved_header
from holdfast.runtime.issuing import Leasing, effect_row, message_row, recall_row, timer_row
from holdfast.runtime.submissions import Outcome, Submission
from holdfast.runtime.tracking import NO_SNAPSHOTS, Tracked
from holdfast.store.shapes import (
    Change,
    Claim,
    EffectClaim,
    Header,
    Observation,
    Receipt,
    Snapshot,
    StoredRecall,
    TimerClaim,
)


class VoidClaimError(Exception):
    """What the command comes from was withdrawn, cancelled or taken over meanwhile."""


class Surroundings:
    """What drafts need to know besides the instance."""

    def __init__(self, programs: Programs, *, ageing: float, snapshot_events: int, observe: bool) -> None:
        self.programs = programs
        self.ageing = ageing
        self.snapshot_events = snapshot_events
        self.observe = observe
        self.leasing: Leasing | None = None
        """Set while this process has a worker."""

    def without_leasing(self) -> Surroundings:
        """The same for commits that hand nothing over, because nobody learns for certain what became of them."""
        return Surroundings(
            self.programs, ageing=self.ageing, snapshot_events=self.snapshot_events, observe=self.observe
        )


class Draft:
    """All that one commit will do to one instance."""

    __slots__ = (
        "_around",
        "before",
        "bodies",
        "change",
        "finished",
        "header",
        "is_tainted",
        "observations",
        "program",
        "state",
        "timers",
    )

    def __init__(self, around: Surroundings, header: Header, program: Program, before: Tracked | None) -> None:
        self._around = around
        self.program = program
        self.before = before
        self.header = header
        """The row as it will be."""
        self.state = before.state if before else program.initial()
        self.timers = dict(before.timers) if before else {}
        self.change = Change(
            header=header,
            expected=header.version,
            events=[],
            effects=[],
            withdrawn=[],
            timers=[],
            cancelled=[],
            messages=[],
            records=[],
            receipts=[],
            consumed=[],
        )
        self.bodies: dict[int, object] = {}
        """Bodies of the new effects by number, so that nobody decodes them again."""
        self.finished: list[Claim] = []
        """Claims that are used up without a change."""
        self.observations: list[Observation] = []
        self.is_tainted = False
        """Whether the decider failed on it: a state that it may have spoilt is not kept."""

    def apply(self, submission: Submission, now: datetime) -> Outcome:
        """Decide one command and add what follows from it. Raises, and adds nothing, if it is refused or fails."""
        self._check_claim(submission.claim)
        header = self.header
        moment = Moment(
            now=now,
            instance=header.id,
            tenant=header.tenant,
            actor=submission.actor,
            comment=submission.comment,
            version=header.version,
            issued=header.issued,
            pending_timers=frozenset(self.timers),
        )
        answer = self.program.answer(self.state, submission.command, moment)
        if isinstance(answer, Decision):
            return self._accept(answer, submission, now)
        if isinstance(answer, Rejection):
            raise RejectedError(reason=answer.code, message=answer.message)
        return self._skip(answer, submission, now)

    @property
    def is_empty(self) -> bool:
        """Whether the instance stays as it is."""
        return not self.change.events

    def finish(self) -> Change:
        """The change to write."""
        change = self.change
        change.header = self.header
        change.keeps_status = self._keeps_status()
        if change.records:
            change.records = merge(change.records)
        change.snapshot = self._snapshot()
        return change

    def after(self) -> Tracked:
        """The instance as it is once the change is written."""
        before, change = self.before, self.change
        tracked = Tracked(self.header, self.program, self.state, self.timers)
        tracked.is_fresh = False
        if change.snapshot is not None:
            tracked.snapshot_bytes = len(change.snapshot.data)
            return tracked
        tracked.events_since = self._events_since()
        tracked.bytes_since = self._bytes_since()
        tracked.snapshot_bytes = before.snapshot_bytes if before else 0
        return tracked

    def give_up(self) -> None:
        """The change will not be written: let go of what was reserved for it."""
        leasing = self._around.leasing
        if leasing is not None:
            for effect in self.change.effects:
                if effect.owner is not None:
                    leasing.release(effect.handler)

    def _check_claim(self, claim: Claim | None) -> None:
        """A command of this very batch may have voided the claim of a later one."""
        match claim:
            case TimerClaim() if self.timers.get(claim.key) != claim.number:
                raise VoidClaimError
            case EffectClaim() if claim.instance == self.header.id and self._is_spent(claim):
                raise VoidClaimError
            case _:
                pass

    def _is_spent(self, claim: EffectClaim) -> bool:
        return claim.number in self.change.withdrawn or claim in self.change.consumed

    def _accept(self, decision: Decision, submission: Submission, now: datetime) -> Outcome:
        program, header = self.program, self.header
        events = [program.events.encode(event) for event in decision.events]
        effects = [program.effects.encode(effect.body) for effect in decision.effects]
        timers = [program.commands.encode(timer.command) for timer in decision.timers]
        messages = [message_row(each, self._around.programs, header.tenant) for each in decision.messages]
        recalls = [recall_row(each, program, header) for each in decision.recalls]
        check_decision(decision, now)
        evolved = decision.state
        state = program.apply(self.state, decision.events) if evolved is msgspec.UNSET else evolved
        status = program.status(state)
        check_text(status.reason, "reason of a status")
        # Nothing can fail from here on: the draft takes all of it.
        self.state = state
        self._use_up(submission.claim)
        if decision.cancelled_timers:
            events += self._cancel_timers(decision.cancelled_timers)
        for number, (effect, encoded) in enumerate(zip(decision.effects, effects, strict=True), start=header.issued):
            self._issue(effect, encoded, number, now)
        issued = header.issued + len(effects)
        for number, (timer, encoded) in enumerate(zip(decision.timers, timers, strict=True), start=issued):
            self._set_timer(timer, encoded, number, now)
        self._withdraw(decision.withdrawn_effects)
        for recall in recalls:
            self._recall(recall)
        if status.is_terminal and self.timers:
            self._cancel_timers(tuple(self.timers))
        self._append(events, submission, now)
        self.change.messages += messages
        self.change.records += decision.records
        self.header = moved_header(
            header, status, version=header.version + len(events), issued=issued + len(timers), now=now
        )
        if submission.receipt is not None:
            self.change.receipts.append(Receipt(submission.receipt, header.id, self.header.version))
        if self._around.observe:
            self._observe(submission, header, skipped=False, now=now)
        return Outcome(header.id, self.header.version)

    def _skip(self, answer: Ignored, submission: Submission, now: datetime) -> Outcome:
        if submission.claim is not None:
            self.finished.append(submission.claim)
            self._stop_timer(submission.claim)
        if self._around.observe and self.header.version:
            self._observe(submission, self.header, skipped=True, now=now)
        reason = answer.reason or "nothing to do"
        return Outcome(self.header.id if self.header.version else None, self.header.version, reason)

    def _append(self, events: list[Encoded], submission: Submission, now: datetime) -> None:
        header = self.header
        self.change.events += [
            StoredEvent(
                instance=header.id,
                sequence=sequence,
                type=encoded.type,
                version=encoded.version,
                data=encoded.data,
                at=now,
                actor=submission.actor,
                comment=submission.comment,
                cause=submission.cause,
                tenant=header.tenant,
            )
            for sequence, encoded in enumerate(events, start=header.version + 1)
        ]

    def _issue(self, effect: Effect, encoded: Encoded, number: int, now: datetime) -> None:
        handler = effect.handler or self.program.type
        leasing = self._around.leasing
        owner = leasing.worker if leasing and not effect.delay and leasing.reserve(handler) else None
        self.bodies[number] = effect.body
        ageing = self._around.ageing
        self.change.effects.append(
            effect_row(
                self.header, effect, encoded, handler=handler, number=number, owner=owner, now=now, ageing=ageing
            )
        )

    def _withdraw(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            if not self._drop_effect(number):
                self._forget_recall(number)
                self.change.withdrawn.append(number)

    def _recall(self, recall: StoredRecall) -> None:
        """Take an effect back. One that is not even written is; one that has just ended, or that nobody wants, needs nothing."""
        change, number = self.change, recall.number
        if self._drop_effect(number):
            change.messages.append(recall.message)
        elif number not in change.withdrawn and not any(
            isinstance(claim, EffectClaim) and claim.instance == self.header.id and claim.number == number
            for claim in change.consumed
        ):
            before = self._forget_recall(number)
            # Of two commands that recall it the first one takes it back; either may ask for it to be stopped.
            change.recalls.append(
                recall if before is None else msgspec.structs.replace(before, stop=before.stop or recall.stop)
            )

    def _forget_recall(self, number: int) -> StoredRecall | None:
        recalls = self.change.recalls
        found = next((each for each in recalls if each.number == number), None) if recalls else None
        if found is not None:
            recalls.remove(found)
        return found

    def _drop_effect(self, number: int) -> bool:
        """Take an effect of this very change out of it; False if it is none."""
        if number not in self.bodies:
            return False
        del self.bodies[number]
        dropped = next(each for each in self.change.effects if each.number == number)
        self.change.effects.remove(dropped)
        if dropped.owner is not None and self._around.leasing:
            self._around.leasing.release(dropped.handler)
        return True

    def _set_timer(self, timer: Timer, encoded: Encoded, number: int, now: datetime) -> None:
        key = timer.key or f"#{number}"
        self._drop_timer(key)
        self.timers[key] = number
        self.change.timers.append(timer_row(self.header, timer, encoded, key=key, number=number, now=now))

    def _cancel_timers(self, keys: tuple[str, ...]) -> list[Encoded]:
        """Drop the timers that are pending, and say so in the words of the history."""
        pending = [key for key in dict.fromkeys(keys) if key in self.timers]
        for key in pending:
            self._drop_timer(key)
        return [Encoded(TIMER_CANCELLED, 1, msgspec.json.encode({"key": key})) for key in pending]

    def _drop_timer(self, key: str) -> None:
        number = self.timers.pop(key, None)
        if number is None:
            return
        fresh = [timer for timer in self.change.timers if timer.number == number]
        if fresh:
            self.change.timers.remove(fresh[0])
        else:
            self.change.cancelled.append(key)

    def _use_up(self, claim: Claim | None) -> None:
        if claim is None:
            return
        self.change.consumed.append(claim)
        self._stop_timer(claim)
        if self.change.recalls and isinstance(claim, EffectClaim) and claim.instance == self.header.id:
            self._forget_recall(claim.number)

    def _stop_timer(self, claim: Claim) -> None:
        """A timer that has fired is no longer pending."""
        if isinstance(claim, TimerClaim):
            self.timers.pop(claim.key, None)

    def _observe(self, submission: Submission, before: Header, *, skipped: bool, now: datetime) -> None:
        header = self.header
        self.observations.append(
            Observation(
                tenant=header.tenant,
                instance=header.id,
                definition=header.definition,
                input=type(submission.command).__name__,
                from_status=before.status if before.version else "",
                to_status=header.status,
                skipped=skipped,
                at=now,
            )
        )

    def _snapshot(self) -> Snapshot | None:
        """A snapshot when the events since the last one outweigh it: so histories of any length stay cheap to load."""
        if self.is_tainted:
            return None
        before = self.before
        kept = before.snapshot_bytes if before else 0
        if self._events_since() < self._around.snapshot_events or kept == NO_SNAPSHOTS or self._bytes_since() < kept:
            return None
        data = self.program.snapshot(self.state)
        if data is not None:
            return Snapshot(version=self.header.version, state_version=self.program.state_version, data=data)
        if before:
            before.snapshot_bytes = NO_SNAPSHOTS
        return None

    def _keeps_status(self) -> bool:
        if self.before is None:
            return False
        old, new = self.before.header, self.header
        return old.status == new.status and old.reason == new.reason and old.ended_at == new.ended_at

    def _events_since(self) -> int:
        return len(self.change.events) + (self.before.events_since if self.before else 0)

    def _bytes_since(self) -> int:
        new = sum(len(event.data) for event in self.change.events)
        return new + (self.before.bytes_since if self.before else 0)
