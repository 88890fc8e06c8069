"""Calls of one run of a workflow: what it comes to, how it stands, telling it something, stopping it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar, cast

import msgspec

from standfast.calls.context import (
    CallContext,
    answered,
    checked_at,
    checked_flag,
    checked_key,
    checked_limit,
    checked_span,
    checked_text,
    failed,
    nothing,
)
from standfast.calls.handlers.step_handlers import plain, plain_data
from standfast.calls.references import Handle, StepLike, checked_step_of
from standfast.calls.status_text import trouble
from standfast.calls.waiters import Bring, Completion, CompletionReply
from standfast.engine.commit.submission import CommandOutcome, receipt_key
from standfast.engine.concurrency.replies import Reply
from standfast.errors import PayloadError, StandfastError, WorkflowFailedError, indefinite
from standfast.features.deciders.deletion import delete_instance
from standfast.features.deciders.masking import mask_for
from standfast.features.deciders.verification import Verification, verified
from standfast.features.runs import views
from standfast.features.runs.audit_entries import AuditEntry, audit_of, last_act
from standfast.features.runs.diagrams import Format, chosen_edges, drawn, rivals
from standfast.features.runs.explain import RunExplanation
from standfast.features.runs.fork import ForkPreview, fork_preview, forked
from standfast.features.runs.history import HistoryRenderer
from standfast.features.runs.pauses.pause import holds_on, may_end
from standfast.features.runs.pauses.views import (
    ResumeOption,
    ResumeRequest,
    is_stuck,
    resume_options,
    resume_request,
)
from standfast.features.runs.reads import (
    check_readable,
    check_run_reader,
    described,
    explained,
    folded_workflow,
    graph_of,
    look_at_run,
    shown_rows,
    shown_steps,
    standing_of,
    trials_of,
    workflow_row,
)
from standfast.features.runs.repair import moved_back, reenqueued, repaired, retried, step_number
from standfast.features.runs.resume import (
    checked_clock,
    checked_data,
    checked_trigger,
    checked_until,
    noting_refusal,
    requested,
)
from standfast.features.runs.views import HumanTask, human_task
from standfast.graph.definition import R
from standfast.kernel.codec.codecs import raised_up
from standfast.kernel.codec.type_cache import settled
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import STEPS, TASKS, PauseClock, ResumeTrigger
from standfast.machine.model.commands import repair_commands as r
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.queries.authorization import read_refusal
from standfast.machine.model.state import RunState
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import Address

T = TypeVar("T")

_MOST_LETTERS: Final = 1000


class FinalState(NamedTuple):
    """What is told of the state of a workflow that has ended."""

    result: bytes
    """As JSON: whoever asks for it gets a copy of his own, and the engine keeps the state."""
    error: str


def final_state(state: object) -> FinalState | None:
    """The end of a workflow; None for other kinds of instances."""
    return FinalState(msgspec.json.encode(state.result), trouble(state)) if isinstance(state, RunState) else None


class FutureRun(Handle, Generic[R]):
    """One run of a workflow. It is a handle: it names the run, and asks the database only when it is asked.

    `R` is what its result is given as, if it was started by a saga with types; else an object.
    """

    __slots__ = ("_desk", "_kind")

    def __init__(self, desk: CallContext, id: InstanceId, kind: type[R]) -> None:  # noqa: A002 - the word that everybody uses for it
        super().__init__(id)
        self._desk = desk
        self._kind = kind

    # -- questions

    def result(self) -> CompletionReply[R]:
        """What the run comes to, once it has ended: its data if it is completed; otherwise WorkflowFailedError says why not."""
        reply: CompletionReply[R] = self._end_reply()
        self._wait(reply, self._bring_result)
        return reply

    def describe(self) -> Reply[views.WorkflowInstance]:
        """The run with its status, its input and its data."""
        return self._look_masked(lambda desk, reader: described(desk, reader, self.id))

    def steps(self) -> Reply[list[views.Step]]:
        """The steps of the run, in the order in which they began."""

        def read(desk: CallContext, reader: TenantReader) -> list[views.Step]:
            header = workflow_row(reader, self.id)
            return shown_steps(desk, reader, header, reader.rows(STEPS, header.id))

        return self._look_masked(read)

    def history(self, *, after: int = 0, limit: int | None = None) -> Reply[list[views.HistoryEntry]]:
        """The history of the run, in order; give the last sequence as `after` for the next page.

        Nothing is folded, and an event that this code does not know is shown with its plain data.
        """

        def read(desk: CallContext, reader: TenantReader) -> list[views.HistoryEntry]:
            start, most = checked_span(after, limit)
            header = workflow_row(reader, self.id)
            try:
                graph = graph_of(desk, header)
            except StandfastError:
                graph = None  # Written by newer code: the events can be told without it.
            mask = mask_for(desk, header.kind, header.definition, header.definition_version)
            teller = HistoryRenderer(desk.registry.library.speaker, graph, desk.request.actor, mask)
            return teller.page(reader, header.id, after=start, limit=most)

        return self._look_masked(read)

    def audit(self, *, after: AuditEntry | int = 0, limit: int = 100) -> Reply[list[AuditEntry]]:
        """List what callers did to the run, in order, one entry for each act. Give the last entry as `after` for the next page.

        An entry says who acted, on whose behalf, why, and the values before and after. What the engine did by itself is in the history.
        """

        def read(reader: TenantReader) -> list[AuditEntry]:
            last, most = last_act(after), checked_limit(limit)
            return audit_of(self._desk, reader, workflow_row(reader, self.id).id, after=last, limit=most)

        return self._look(read)

    def tasks(self) -> Reply[list[HumanTask]]:
        """The questions of the run to people, answered ones included."""
        return self._desk.read_for(
            lambda: shown_rows(self._desk, TASKS, self.id),
            lambda found, desk: [human_task(each, found[0], desk.request.actor) for each in found[1]],
            needs_roles=lambda found: any(each.guarded for each in found[1]),
        )

    def diagram(self, *, format: Format = "mermaid") -> Reply[str]:  # noqa: A002 - the word that everybody uses for it
        """A drawing of the run with its live state, as Mermaid, DOT or JSON."""

        def draw(reader: TenantReader) -> str:
            header = workflow_row(reader, self.id)
            rows = reader.rows(STEPS, header.id)
            steps = shown_steps(self._desk, reader, header, rows)
            graph = graph_of(self._desk, header)
            chosen = (
                chosen_edges(reader.events(header.id), self._desk.registry.library.speaker) if rivals(graph) else ()
            )
            return drawn(graph, format, steps=steps, rows=rows, chosen=chosen)

        return self._look(draw)

    def verify(self) -> Reply[Verification]:
        """Fold the whole history of the run again and compare it with what is stored: its row, its state, and what it shows."""
        return self._look(lambda reader: verified(reader, self._desk.registry, self._address))

    def why(self) -> Reply[RunExplanation]:
        """Why the run does not move, in words and as data: what it waits for, since when, until when, and what could be done.

        A run that moves says so; one that has not ended and that nothing can ever wake is an incident.
        """
        return self._desk.read(lambda: explained(self._desk, self.id))

    # -- commands

    def signal(self, name: str, payload: object = None, *, command_id: str = "") -> Reply[None]:
        """Tell the run that something happened. A step that waits for it goes on; if none does yet, it is kept.

        `command_id` makes the call idempotent for the run: what is delivered twice counts once, and another signal under the same id
        is a ReusedIdError.
        """
        try:
            command = c.SendSignal(
                name=checked_key(name, "signal"),
                payload=plain(payload, what="payload", limit=self._desk.payload_limit),
            )
            receipt = receipt_key(self._address, checked_key(command_id, "command id", may_be_empty=True))
        except StandfastError as error:
            return failed(error)
        return self._desk.command(self._address, command, nothing, receipt=receipt, may_create=False)

    def cancel(self, reason: str = "") -> CompletionReply[str]:
        """Stop the run and undo what it did; the answer is there when that is done, and says how the run ended.

        Handlers that are running are told to stop and waited for, so do not wait for the answer inside one of them.
        """
        try:
            command = c.CancelWorkflow(reason=checked_text(reason, "reason"))
        except StandfastError as error:
            return self._refused(error)
        return self._ended_by(command)

    def abort(self, reason: str = "") -> CompletionReply[str]:
        """End the run at once; nothing is undone. The answer says how the run ended."""
        try:
            command = c.AbortWorkflow(reason=checked_text(reason, "reason"))
        except StandfastError as error:
            return self._refused(error)
        return self._ended_by(command)

    def pause(
        self, reason: str = "", *, clock: PauseClock | None = None, until: datetime | timedelta | None = None
    ) -> Reply[None]:
        """Have the run wait: handlers that are running finish, and what follows from them is held until `resume`.

        `clock` says what becomes of its timers, timeouts and deadline: with `run_on`, which is the default, those that pass meanwhile
        fire once it goes on; with `stand_still` all of them are as much later as the pause is long. With `until` it goes on by itself, at an
        instant or after so long.
        Whoever is not the engine itself needs the capability `execution:pause`.
        """
        now = self._desk.service.shared.clock.now()
        try:
            command = c.PauseWorkflow(
                reason=checked_text(reason, "reason"), clock=checked_clock(clock), until=checked_until(until, now)
            )
        except StandfastError as error:
            return failed(error)
        return self._desk.command(self._address, command, nothing, comment=reason, may_create=False)

    def resume(
        self,
        reason: str = "",
        *,
        data: dict[str, object] | None = None,
        override: bool = False,
        task: StepLike | None = None,
        triggered_by: ResumeTrigger = "manual",
        triggered_by_id: str = "",
    ) -> Reply[None]:
        """Let the run go on if it is paused, or waits for an operator and has no dead letters.

        Conditions find `data` from then on under `resume`; the data of the run stays as it is. The same `triggered_by_id` twice is one
        resume (the idempotency key of the request, if nothing else is given). `override` goes past an open question: it is closed as
        overridden, with the reason, and counts as approved; of several, `task` names one. Whoever is not the engine itself needs the
        capability `execution:resume`, and for that `execution:override`. A request that is refused is written down too.
        """
        try:
            command = self._resuming(reason, data, triggered_by, triggered_by_id)
            if checked_flag(override, "override") or task is not None:
                step = None if task is None else checked_step_of(self.id, task)
                command = msgspec.structs.replace(command, override=True, step=step)
        except StandfastError as error:
            return failed(error)
        told: Reply[None] = self._desk.command(self._address, command, nothing, comment=reason, may_create=False)
        return noting_refusal(self._desk, self.id, command, told)

    def request_resume(
        self,
        reason: str = "",
        *,
        data: dict[str, object] | None = None,
        triggered_by: ResumeTrigger = "manual",
        triggered_by_id: str = "",
    ) -> Reply[ResumeRequest]:
        """Write down that the run is to go on, and leave that to the worker that does so now and then (`resume_worker_interval`).

        The actor must be allowed to resume it now; `resume_requests` tells what became of it.
        """
        try:
            command = self._resuming(reason, data, triggered_by, triggered_by_id)
        except StandfastError as error:
            return failed(error)
        return self._desk.read(lambda: requested(self._desk, self.id, command))

    def resume_requests(self) -> Reply[list[ResumeRequest]]:
        """All requests to let the run go on, in order, with what became of each; those that were refused, too."""

        def read(reader: TenantReader) -> list[ResumeRequest]:
            return [resume_request(each) for each in reader.resume_requests(workflow_row(reader, self.id).id)]

        return self._look(read)

    def resume_options(self) -> Reply[list[ResumeOption]]:
        """What would bring the run on, and who may do that; empty if nothing would. Each of them would be accepted as things are."""

        def read(reader: TenantReader) -> list[ResumeOption]:
            tracked = folded_workflow(self._desk, reader, self.id)
            header, state = tracked.header, cast("RunState", tracked.state)
            holds = [each for each in holds_on(self._desk, header, state) if may_end(self._desk, each)]
            kept = reader.dead_letters(instance=self.id, limit=_MOST_LETTERS) if is_stuck(state) else []
            letters = {each.number for each in kept if each.source == "compensation"}
            trials, graph = trials_of(self._desk, tracked), graph_of(self._desk, header)
            return resume_options(self.id, trials, graph, holds, letters=letters)

        return self._look(read)

    # -- repair: each has a reason, which the history keeps, and needs the capability `execution:repair`

    def retry(self, step: StepLike | int, *, reason: str, input: object = None) -> Reply[None]:  # noqa: A002 - the word that everybody uses for it
        """Call the handler of a step now: of one that gave up, with another `input` if one is given, or of one that waits for its next call.

        The step is given as such, by its id, or by its number. While a worker has it in hand this is refused (`still_running`).
        """

        def retry() -> None:
            new = None if input is None else plain_data(input, "input", limit=self._desk.payload_limit)
            number = step_number(step, self.id)
            retried(self._desk, self.id, r.RetryStep(step=number, input=new, reason=checked_text(reason, "reason")))

        return self._desk.read(retry)

    def reenqueue(self, step: StepLike | int, *, reason: str) -> Reply[None]:
        """Have a step called by another worker now, because the one that has it in hand is gone; refused while that one is alive."""

        def reenqueue() -> None:
            number = step_number(step, self.id)
            reenqueued(self._desk, self.id, r.ReenqueueStep(step=number, reason=checked_text(reason, "reason")))

        return self._desk.read(reenqueue)

    def skip(self, step: StepLike | int, *, reason: str, outcome: str = "") -> Reply[None]:
        """Go on behind a step that has not ended, without its work; nothing of it is undone, now or later.

        It goes on as if the step had ended well, or by the `outcome` that is named. To go past people who are asked, here or in a
        run that the step has called, takes the capability `execution:override` besides; where people have a say, so does a step that decides.
        """
        try:
            by, why = checked_key(outcome, "outcome", may_be_empty=True), checked_text(reason, "reason")
            return repaired(self._desk, self.id, r.SkipStep(step=step_number(step, self.id), outcome=by, reason=why))
        except StandfastError as error:
            return failed(error)

    def cancel_branch(self, token: str, *, reason: str) -> Reply[None]:
        """End one of several branches, by its token; the others go on and are waited for without it. Never one with a gate or an approval ahead."""
        try:
            told = r.CancelBranch(token=checked_key(token, "token"), reason=checked_text(reason, "reason"))
            return repaired(self._desk, self.id, told)
        except StandfastError as error:
            return failed(error)

    def complete_step(self, step: StepLike | int, output: object = None, *, reason: str) -> Reply[None]:
        """End a step whose work was done by other means, with this answer, as if its handler had come back with it.

        Where people have a say in the run, an answer, and a step that decides, take the capability `execution:override` besides.
        """
        try:
            given = plain(output, what="output", limit=self._desk.payload_limit)
            why = checked_text(reason, "reason")
            command = r.CompleteByHand(step=step_number(step, self.id), output=given, reason=why)
        except StandfastError as error:
            return failed(error)
        return repaired(self._desk, self.id, command)

    def change_data(self, patch: object, *, reason: str, token: str = "") -> Reply[None]:
        """Lay a JSON merge patch over the data of all tokens, or of one: objects name by name, None takes a name away.

        What was asked for before goes on with the data that it was given.
        """
        try:
            given = plain_data(patch, "patch", limit=self._desk.payload_limit)
            where, why = checked_key(token, "token", may_be_empty=True), checked_text(reason, "reason")
            command = r.ChangeData(patch=given, token=where, reason=why)
        except StandfastError as error:
            return failed(error)
        return repaired(self._desk, self.id, command)

    def move_back(self, save_point: str = "", *, reason: str) -> Reply[None]:
        """Undo what was done behind a save point, the last one if none is named, and go on from there with the data of that time."""

        def move() -> None:
            name = checked_key(save_point, "save point", may_be_empty=True)
            moved_back(self._desk, self.id, name, checked_text(reason, "reason"))

        return self._desk.read(move)

    def fail(self, reason: str) -> CompletionReply[str]:
        """Have the run fail as if a step had failed for good: what it did is undone, up to its last save point. How it ended."""
        try:
            command = r.ForceFailure(reason=checked_text(reason, "reason"))
        except StandfastError as error:
            return self._refused(error)
        return self._ended_by(command)

    def fork_preview(self, at: int) -> Reply[ForkPreview]:
        """What a new run would take over, and have done again, that begins where this one was after the event with this sequence."""
        return self._look(lambda reader: fork_preview(self._desk, reader, self.id, checked_at(at)))

    def fork(self, at: int, *, reason: str, data: object = None, key: str = "") -> Reply[FutureRun[R]]:
        """Start a new run of the same version where this one was after the event with this sequence; this one stays as it is.

        What was under way then is asked for again, with idempotency keys of its own. `data` is laid over the data of all tokens like
        the patch of `change_data`; `key` is the business key of the new run. Approvals were given to other data then: the new run begins
        where the first of them was open and asks again, unless the actor has the capability `execution:override`.
        """

        def fork() -> FutureRun[R]:
            patch = plain_data(data, "data", limit=self._desk.payload_limit)
            why, named = checked_text(reason, "reason"), checked_key(key, "key", may_be_empty=True)
            born = forked(self._desk, self.id, at=checked_at(at), reason=why, patch=patch, key=named)
            return FutureRun(self._desk, born, self._kind)

        return self._desk.read(fork)

    # -- its end

    def delete(self, *, force: bool = False, reason: str = "") -> Reply[None]:
        """Delete the run once it has ended, whole; `force` also if it is still needed (see `instances.delete`). It takes the capability `execution:repair`."""
        return self._desk.read(lambda: delete_instance(self._desk, self.id, force=force, reason=reason))

    # -- how

    def _resuming(
        self, reason: str, data: dict[str, object] | None, triggered_by: ResumeTrigger, triggered_by_id: str
    ) -> c.ResumeWorkflow:
        key = triggered_by_id or self._desk.request.idempotency_key
        return c.ResumeWorkflow(
            reason=checked_text(reason, "reason"),
            trigger=checked_trigger(triggered_by),
            trigger_id=checked_key(key, "triggered_by_id", may_be_empty=True),
            data=checked_data(data, limit=self._desk.payload_limit),
        )

    def _look(self, question: Callable[[TenantReader], T]) -> Reply[T]:
        """Ask about the run, if whoever calls may look at it."""

        def look(reader: TenantReader) -> T:
            check_readable(self._desk, reader, self.id)
            return question(reader)

        return self._desk.look(look)

    def _look_masked(self, question: Callable[[CallContext, TenantReader], T]) -> Reply[T]:
        """The same, where the answer tells of the data: of documents only what is visible to whoever calls."""

        def look(desk: CallContext, reader: TenantReader) -> T:
            check_readable(desk, reader, self.id)
            return question(desk, reader)

        return look_at_run(self._desk, self.id, look)

    @property
    def _address(self) -> Address:
        return self._desk.address(instance=self.id)

    def _refused(self, error: StandfastError) -> CompletionReply[T]:
        reply: CompletionReply[T] = self._end_reply()
        reply.set_error(error)
        return reply

    def _ended_by(self, command: object) -> CompletionReply[str]:
        """The status of the run once it has ended, if a command for it was accepted."""
        reply: CompletionReply[str] = self._end_reply()
        told: Reply[CommandOutcome] = self._desk.command(self._address, command, _same, may_create=False)

        def wait() -> None:
            error = told.exception()
            if error is not None:
                reply.set_error(error)
            else:
                self._wait(reply, _bring_status)

        told.when_brought(wait)
        return reply

    def _end_reply(self) -> CompletionReply[T]:
        return self._desk.endings.reply(partial(standing_of, self._desk, self.id))

    def _wait(self, reply: CompletionReply[T], bring: Bring[T]) -> None:
        try:
            self._desk.service.check_process()
            self._desk.service.store.refuse_inside()
        except StandfastError as error:
            reply.set_error(error)
        else:
            self._desk.endings.wait(self._address, reply, bring)

    def _bring_result(self, ending: Completion, reply: Reply[R]) -> None:
        is_known = read_refusal(self._desk.request.actor, ending.header.started_by) is None
        if ending.summary is not None and is_known:
            answered(reply, lambda: self._result(ending))
        else:  # Another process ended it, or nobody remembers how; or it has to be looked up whether the caller may know.
            self._desk.read(lambda: self._result(ending), reply)

    def _result(self, ending: Completion) -> R:
        header = ending.header
        check_run_reader(self._desk, self._desk.reader, header)
        final = ending.summary or self._final_state(header.id)
        assert isinstance(final, FinalState)
        if header.status == "completed":
            return self._typed(final.result)
        raise WorkflowFailedError(instance=str(header.id), status=header.status, reason=final.error or header.reason)

    def _typed(self, result: bytes) -> R:
        if self._kind is object:
            return cast("R", msgspec.json.decode(result))
        try:
            return msgspec.json.decode(result, type=settled(self._kind), dec_hook=raised_up)
        except ValueError as error:  # Of msgspec, or of a pydantic model.
            raise PayloadError(f"the result of {self.id} is not {indefinite(self._kind)}: {error}") from error

    def _final_state(self, identity: InstanceId) -> FinalState | None:
        with self._desk.reader.look() as reader:
            return final_state(folded_workflow(self._desk, reader, identity).state)


def _same(outcome: CommandOutcome) -> CommandOutcome:
    return outcome


def _bring_status(ending: Completion, reply: Reply[str]) -> None:
    reply.set_result(ending.header.status)
