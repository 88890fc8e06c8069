"""Calls of one run of a workflow: what it comes to, how it stands, telling it something, stopping it."""

from __future__ import annotations

from functools import partial
from typing import Generic, NamedTuple, TypeVar, cast

import msgspec

from holdfast.app import workflow_views as views
from holdfast.app.calls.instances import deleted
from holdfast.app.desk import Desk, answered, checked_key, checked_span, checked_text, failed, nothing
from holdfast.app.handles import Handle
from holdfast.app.histories import Teller
from holdfast.app.pictures import Format, drawn
from holdfast.app.standing import Work, standing, trouble
from holdfast.app.step_handlers import plain
from holdfast.app.task_views import HumanTask, human_task
from holdfast.app.verification import Verification, verified
from holdfast.app.waiters import Bring, Ending, EndReply
from holdfast.app.workflow_reads import described, folded_workflow, graph_of, shown_steps, workflow_row
from holdfast.authoring.definition import R
from holdfast.errors import HoldfastError, PayloadError, WorkflowFailedError, indefinite
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.records import STEPS, TASKS
from holdfast.machine.runs import commands as c
from holdfast.machine.runs.state import State
from holdfast.runtime.commit.submissions import Outcome, receipt_key
from holdfast.runtime.replies import Reply
from holdfast.store.reading import Reader
from holdfast.store.shapes import Address

_LOOK_SECONDS = 1.0
"""How long a caller who has waited in vain waits to be told why."""
T = TypeVar("T")


class FinalState(NamedTuple):
    """What is told of the state of a workflow that has ended."""

    result: bytes
    """As JSON: whoever asks for it gets a copy of his own, and the engine keeps the state."""
    error: str


def final_state(state: object) -> FinalState | None:
    """The end of a workflow; None for other kinds of instances."""
    return FinalState(msgspec.json.encode(state.result), trouble(state)) if isinstance(state, State) else None


class FutureRun(Handle, Generic[R]):
    """One run of a workflow. It is a handle: it names the run, and asks the database only when it is asked.

    `R` is what its result is given as, if it was started by a saga with types; else an object.
    """

    __slots__ = ("_desk", "_kind")

    def __init__(self, desk: Desk, id: InstanceId, kind: type[R]) -> None:  # noqa: A002 - the word that everybody uses for it
        super().__init__(id)
        self._desk = desk
        self._kind = kind

    # -- questions

    def result(self) -> EndReply[R]:
        """What the run comes to, once it has ended: its data if it is completed; otherwise WorkflowFailedError says why not."""
        reply: EndReply[R] = self._end_reply()
        self._wait(reply, self._bring_result)
        return reply

    def describe(self) -> Reply[views.WorkflowInstance]:
        """The run with its status, its input and its data."""
        return self._desk.look(lambda reader: described(self._desk, reader, self.id))

    def steps(self) -> Reply[list[views.Step]]:
        """The steps of the run, in the order in which they began."""

        def read(reader: Reader) -> list[views.Step]:
            header = workflow_row(reader, self.id)
            return shown_steps(self._desk, reader, header, reader.rows(STEPS, header.id))

        return self._desk.look(read)

    def history(self, *, after: int = 0, limit: int | None = None) -> Reply[list[views.HistoryEntry]]:
        """The history of the run, in order; give the last sequence as `after` for the next page.

        Nothing is folded, and an event that this code does not know is shown with its plain data.
        """

        def read(reader: Reader) -> list[views.HistoryEntry]:
            start, most = checked_span(after, limit)
            header = workflow_row(reader, self.id)
            try:
                graph = graph_of(self._desk, header)
            except HoldfastError:
                graph = None  # Written by newer code: the events can be told without it.
            teller = Teller(self._desk.registry.library.speaker, graph)
            return teller.page(reader, header.id, after=start, limit=most)

        return self._desk.look(read)

    def tasks(self) -> Reply[list[HumanTask]]:
        """The questions of the run to people, answered ones included."""

        def read(reader: Reader) -> list[HumanTask]:
            header = workflow_row(reader, self.id)
            return [human_task(each, header) for each in reader.rows(TASKS, header.id)]

        return self._desk.look(read)

    def diagram(self, *, format: Format = "mermaid") -> Reply[str]:  # noqa: A002 - the word that everybody uses for it
        """A drawing of the run with its live state, as Mermaid, DOT or JSON."""

        def draw(reader: Reader) -> str:
            header = workflow_row(reader, self.id)
            rows = reader.rows(STEPS, header.id)
            steps = shown_steps(self._desk, reader, header, rows)
            return drawn(graph_of(self._desk, header), format, steps=steps, rows=rows)

        return self._desk.look(draw)

    def verify(self) -> Reply[Verification]:
        """Fold the whole history of the run again and compare it with what is stored: its row, its state, and what it shows."""
        return self._desk.look(lambda reader: verified(reader, self._desk.registry, self._address))

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
        except HoldfastError as error:
            return failed(error)
        return self._desk.command(self._address, command, nothing, receipt=receipt, may_create=False)

    def cancel(self, reason: str = "") -> EndReply[str]:
        """Stop the run and undo what it did; the answer is there when that is done, and says how the run ended.

        Handlers that are running are told to stop and waited for, so do not wait for the answer inside one of them.
        """
        try:
            command = c.CancelWorkflow(reason=checked_text(reason, "reason"))
        except HoldfastError as error:
            return self._refused(error)
        return self._ended_by(command)

    def abort(self, reason: str = "") -> EndReply[str]:
        """End the run at once; nothing is undone. The answer says how the run ended."""
        try:
            command = c.AbortWorkflow(reason=checked_text(reason, "reason"))
        except HoldfastError as error:
            return self._refused(error)
        return self._ended_by(command)

    def resume(self) -> Reply[None]:
        """Let the run go on if it waits for an operator and has no dead letters."""
        return self._desk.command(self._address, c.ResumeWorkflow(), nothing, may_create=False)

    def delete(self, *, force: bool = False) -> Reply[None]:
        """Delete the run once it has ended, whole; `force` also if it is still needed (see `instances.delete`)."""
        return self._desk.read(lambda: deleted(self._desk, self.id, force=force))

    # -- how

    @property
    def _address(self) -> Address:
        return Address(tenant=self._desk.tenant, instance=self.id)

    def _refused(self, error: HoldfastError) -> EndReply[T]:
        reply: EndReply[T] = self._end_reply()
        reply.set_error(error)
        return reply

    def _ended_by(self, command: object) -> EndReply[str]:
        """The status of the run once it has ended, if a command for it was accepted."""
        reply: EndReply[str] = self._end_reply()
        told: Reply[Outcome] = self._desk.command(self._address, command, _same, may_create=False)

        def wait() -> None:
            error = told.exception()
            if error is not None:
                reply.set_error(error)
            else:
                self._wait(reply, _bring_status)

        told.when_brought(wait)
        return reply

    def _end_reply(self) -> EndReply[T]:
        return self._desk.endings.reply(partial(_standing, self._desk, self.id))

    def _wait(self, reply: EndReply[T], bring: Bring[T]) -> None:
        try:
            self._desk.service.check_process()
            self._desk.service.store.refuse_inside()
        except HoldfastError as error:
            reply.set_error(error)
        else:
            self._desk.endings.wait(self._desk.tenant, self.id, reply, bring)

    def _bring_result(self, ending: Ending, reply: Reply[R]) -> None:
        if ending.summary is not None:
            answered(reply, lambda: self._result(ending))
        else:  # Another process ended it, or nobody remembers how.
            self._desk.read(lambda: self._result(ending), reply)

    def _result(self, ending: Ending) -> R:
        header = ending.header
        final = ending.summary or self._final_state(header.id)
        assert isinstance(final, FinalState)
        if header.status == "completed":
            return self._typed(final.result)
        raise WorkflowFailedError(instance=str(header.id), status=header.status, reason=final.error or header.reason)

    def _typed(self, result: bytes) -> R:
        if self._kind is object:
            return cast("R", msgspec.json.decode(result))
        try:
            return msgspec.json.decode(result, type=self._kind)
        except msgspec.ValidationError as error:
            raise PayloadError(f"the result of {self.id} is not {indefinite(self._kind)}: {error}") from error

    def _final_state(self, identity: InstanceId) -> FinalState | None:
        with self._desk.reader.look() as reader:
            return final_state(folded_workflow(self._desk, reader, identity).state)


def _standing(desk: Desk, identity: InstanceId) -> str:
    """Where a run stands, for a caller who waits for its end in vain; that caller does not wait much longer for this."""

    def look() -> str:
        work, is_held = _work(desk), bool(desk.service.maintenance)
        with desk.reader.look() as reader:
            tracked = folded_workflow(desk, reader, identity)
            return standing(cast("State", tracked.state), graph_of(desk, tracked.header), work=work, is_held=is_held)

    try:
        return desk.read(look).result(_LOOK_SECONDS)
    except (HoldfastError, TimeoutError) as error:
        return f"where it stands could not be found out: {error}"


def _work(desk: Desk) -> Work:
    service = desk.service
    if not service.has_threads:
        return "driven"
    if service.has_worker:
        return "here"
    moment = service.shared.clock.judge()
    is_alive = service.survey(lambda parts: parts.workers().live(moment))
    return "elsewhere" if is_alive else "nowhere"


def _same(outcome: Outcome) -> Outcome:
    return outcome


def _bring_status(ending: Ending, reply: Reply[str]) -> None:
    reply.set_result(ending.header.status)
