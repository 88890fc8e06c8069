"""Calls of workflows: starting them, looking at them, deciding, signalling, stopping."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, TypeVar, cast, get_args

import msgspec

from holdfast.app import workflow_views as views
from holdfast.app.definitions import copied
from holdfast.app.desk import Desk, answered, checked_key, checked_limit, checked_span, checked_text, failed
from holdfast.app.histories import Teller
from holdfast.app.pictures import Format, drawn
from holdfast.app.references import (
    DefinitionLike,
    InstanceLike,
    StepLike,
    checked_definition,
    checked_instance,
    checked_step,
)
from holdfast.app.standing import Work, standing, trouble
from holdfast.app.step_handlers import plain, plain_data
from holdfast.app.waiters import Bring, Ending, EndReply
from holdfast.app.words import words_of
from holdfast.errors import HoldfastError, NotFoundError, PayloadError, UnfinishedError
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.records import STEPS, TASKS, StoredStep, TaskPlace
from holdfast.machine.graphs.compiler import graph_data
from holdfast.machine.graphs.graph import Graph
from holdfast.machine.graphs.graph import Kind as GraphKind
from holdfast.machine.runs import commands as c
from holdfast.machine.runs.state import State
from holdfast.runtime.commit.cache import CachedInstance
from holdfast.runtime.commit.submissions import Outcome
from holdfast.runtime.replies import Reply
from holdfast.store.findings import PublishedDefinition
from holdfast.store.paging import newest
from holdfast.store.reading import Reader
from holdfast.store.shapes import Address, Header, InstanceQuery, ReceiptKey

_LARGEST_PAGE = 1000
_LOOK_SECONDS = 1.0
"""How long a caller who has waited in vain waits to be told why."""
T = TypeVar("T")
_KINDS: tuple[str, ...] = get_args(GraphKind)
"""What lists of workflows show; instances of deciders are none."""


class FinalState(NamedTuple):
    """What is told of the state of a workflow that has ended."""

    result: bytes
    """As JSON: whoever asks for it gets a copy of his own, and the engine keeps the state."""
    error: str


def final_state(state: object) -> FinalState | None:
    """The end of a workflow; None for other kinds of instances."""
    return FinalState(msgspec.json.encode(state.result), trouble(state)) if isinstance(state, State) else None


class WorkflowCalls(Desk):
    """What can be asked of workflows."""

    # -- commands

    def start(
        self,
        definition: DefinitionLike,
        input: object = None,  # noqa: A002 - the word that everybody uses for it
        *,
        version: str | int = "",
        key: str = "",
        idempotency_key: str = "",
        delay: timedelta | float = 0,
        comment: str = "",
    ) -> Reply[InstanceId]:
        """Start a workflow; the id of the instance.

        It is given by name (the newest version), by name and version, by id such as `order-v1`, or as the finished saga itself.
        `key` is a business key: there can be one instance with it, ever. `idempotency_key` makes the call safe to repeat: the same
        key gives the same instance, and with another input or business key ReusedIdError; without it that of the request counts. `delay` puts the first step off, as a timedelta or in seconds.
        """
        try:
            name, pinned = self._registry.library.find(self.tenant, *checked_definition(definition, version))
            data = plain_data(input, "input", limit=self._payload_limit)
            command = c.StartWorkflow(input=data, delay_ms=_milliseconds(delay))
            address = self._birthplace(name, checked_key(key, "key", may_be_empty=True))
            repeatable = checked_key(idempotency_key, "idempotency key", may_be_empty=True)
            receipt = self._receipt(name, repeatable or self.request.idempotency_key)
        except HoldfastError as error:
            return failed(error)
        told = self._command(address, command, comment=comment, receipt=receipt, definition_version=pinned)
        return told.mapped(_instance_of)

    def result(self, instance: InstanceLike) -> Reply[object]:
        """What a workflow comes to, once it has ended: its data if it is completed; otherwise UnfinishedError says why not."""
        reply: EndReply[object] = self._end_reply(instance)
        self._wait(instance, reply, self._bring_result)
        return reply

    def cancel(self, instance: InstanceLike, reason: str = "", *, requested_by: str = "") -> Reply[str]:
        """Stop a workflow and undo what it did; the reply is there when that is done, and says how the workflow ended.

        Handlers that are running are told to stop and waited for, so do not wait for the reply inside one of them.
        """
        try:
            command = c.CancelWorkflow(reason=checked_text(reason, "reason"))
        except HoldfastError as error:
            return failed(error)
        return self._after(self._tell(instance, command, actor=requested_by), instance)

    def abort(self, instance: InstanceLike, reason: str = "", *, requested_by: str = "") -> Reply[str]:
        """End a workflow at once; nothing is undone."""
        try:
            command = c.AbortWorkflow(reason=checked_text(reason, "reason"))
        except HoldfastError as error:
            return failed(error)
        return self._after(self._tell(instance, command, actor=requested_by), instance)

    def decide(
        self,
        step: StepLike,
        decision: str,
        *,
        decided_by: str = "",
        comment: str = "",
        data: object = None,
    ) -> Reply[None]:
        """Answer a step that waits for a person; `step` is its id, as `steps` and `tasks` give it, or what they gave itself.

        `decision` is one of the outcomes that its definition names, in sagas `confirmed` or `rejected`; ForbiddenError if the actor
        lacks the role or the capability that the step asks for.
        `decided_by` says who; without it the actor of these calls (`as_tenant(…, actor=…)`), which is `system` for the engine's own.
        The steps behind find the answer under the name of the step: `status`, `decided_by`, `decided_at`, `comment`, and as `data`
        what was given here. The same answer by the same person again does nothing; any other is refused.
        """
        try:
            instance, number = checked_step(step)
            checked_key(decision, "decision")
            checked_text(comment, "comment")
            given = plain(data, what="data", limit=self._payload_limit)
        except HoldfastError as error:
            return failed(error)
        command = c.AnswerStep(step=number, outcome=decision, comment=comment, data=given)
        return self._tell(instance, command, actor=decided_by, comment=comment).mapped(lambda _outcome: None)

    def signal(self, instance: InstanceLike, name: str, payload: object = None) -> Reply[None]:
        """Tell a workflow that something happened. A step that waits for it goes on; if none does yet, it is kept."""
        try:
            command = c.SendSignal(
                name=checked_key(name, "signal"), payload=plain(payload, what="payload", limit=self._payload_limit)
            )
        except HoldfastError as error:
            return failed(error)
        return self._tell(instance, command).mapped(lambda _outcome: None)

    def resume(self, instance: InstanceLike) -> Reply[None]:
        """Let a workflow go on that waits for an operator and has no dead letters."""
        return self._tell(instance, c.ResumeWorkflow()).mapped(lambda _outcome: None)

    # -- questions

    def steps(self, instance: InstanceLike) -> Reply[list[views.Step]]:
        """The steps of a workflow, in the order in which they began."""

        def read(reader: Reader) -> list[views.Step]:
            header = _workflow(reader, instance)
            return self._shown(reader, header, reader.rows(STEPS, header.id))

        return self._look(read)

    def events(
        self, instance: InstanceLike, *, after: int = 0, limit: int | None = None
    ) -> Reply[list[views.HistoryEntry]]:
        """The history of a workflow, in order; give the last sequence as `after` for the next page.

        Nothing is folded, and an event that this code does not know is shown with its plain data.
        """

        def read(reader: Reader) -> list[views.HistoryEntry]:
            start, most = checked_span(after, limit)
            header = _workflow(reader, instance)
            try:
                graph = self._graph(header)
            except HoldfastError:
                graph = None  # Written by newer code: the events can be told without it.
            teller = Teller(self._registry.library.speaker, graph)
            return teller.page(reader, header.id, after=start, limit=most)

        return self._look(read)

    def list_instances(  # noqa: PLR0913 - filters, all by name
        self,
        *,
        definition: DefinitionLike = "",
        version: str | int = "",
        status: str | Sequence[str] = (),
        key: str = "",
        parent: InstanceLike | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        cursor: InstanceLike | None = None,
        limit: int = 100,
    ) -> Reply[views.Page]:
        """Workflows, newest first, a page at a time; `status` is one or several of the saga's words."""
        wanted, words = _several(status), words_of("saga")
        unknown = [word for word in wanted if word not in {*words.ACTIVE, *words.TERMINAL}]
        if unknown:
            known = ", ".join((*words.ACTIVE, *words.TERMINAL))
            return failed(PayloadError(f"there is no status {unknown[0]!r}; there are {known}"))
        if version != "" and not definition:
            return failed(
                PayloadError(
                    f"version {version!r} is that of no definition: give the definition too, or leave the version out"
                )
            )

        def read(reader: Reader) -> views.Page:
            size = min(checked_limit(limit), _LARGEST_PAGE)
            name, pinned = checked_definition(definition, version) if definition else ("", "")
            query = InstanceQuery(
                definition=name,
                definition_version=pinned,
                kinds=_KINDS,
                key=checked_key(key, "key", may_be_empty=True),
                parent=None if parent is None else checked_instance(parent),
                created_after=created_after,
                created_before=created_before,
                before=None if cursor is None else checked_instance(cursor),
                limit=size + 1,
            )
            found = [
                header
                for statuses, begun in words.stored_statuses(wanted)
                for header in reader.instances(msgspec.structs.replace(query, statuses=statuses, begun=begun))
            ]
            headers = newest(found, size)
            begun = _begun(reader, headers)
            items = [views.summary(header, has_begun=header.id in begun) for header in headers]
            return views.Page(items=items, next=headers[-1].id if len(found) > size else None)

        return self._look(read)

    def active_instances(self, *, cursor: InstanceLike | None = None, limit: int = 100) -> Reply[views.Page]:
        """Workflows that have not ended."""
        return self.list_instances(status=words_of("saga").ACTIVE, cursor=cursor, limit=limit)

    def tasks(
        self,
        instance: InstanceLike | None = None,
        *,
        role: str | None = None,
        after: views.HumanTask | None = None,
        limit: int = 100,
    ) -> Reply[list[views.HumanTask]]:
        """The questions of one workflow, answered ones included; or all that wait for an answer, oldest first.

        Give the last one as `after` for the next page.
        """

        def read(reader: Reader) -> list[views.HumanTask]:
            if instance is not None:
                return [views.human_task(each) for each in reader.rows(TASKS, _workflow(reader, instance).id)]
            last = None if after is None else TaskPlace(after.asked_at, after.instance, after.step_number)
            asked = None if role is None else checked_text(role, "role")
            found = reader.open_tasks(role=asked, after=last, limit=checked_limit(limit))
            return [views.human_task(each) for each in found]

        return self._look(read)

    def definitions(self) -> Reply[list[PublishedDefinition]]:
        """All published versions of all workflows, by name, each oldest first."""
        return self._read(lambda: self._registry.library.listed(self.tenant))

    def definition(self, definition: DefinitionLike, version: str | int = "") -> Reply[Graph]:
        """The published graph of a workflow."""
        return self._read(
            lambda: copied(self._registry.library.graph(self.tenant, *checked_definition(definition, version)))
        )

    def definition_data(self, definition: DefinitionLike, version: str | int = "") -> Reply[dict[str, object]]:
        """The same as plain data, which can be written as JSON, changed, and published as another version."""
        return self.definition(definition, version).then(graph_data)

    def diagram(
        self,
        definition: DefinitionLike | InstanceLike,
        version: str | int = "",
        *,
        format: Format = "mermaid",  # noqa: A002 - see `start`
    ) -> Reply[str]:
        """A drawing of a definition, or of an instance with its live state, as Mermaid, DOT or JSON."""

        def draw(reader: Reader) -> str:
            try:
                instance = checked_instance(definition)
            except PayloadError:
                return drawn(
                    self._registry.library.graph(self.tenant, *checked_definition(definition, version)), format
                )
            header = _workflow(reader, instance)
            rows = reader.rows(STEPS, header.id)
            return drawn(self._graph(header), format, steps=self._shown(reader, header, rows), rows=rows)

        return self._look(draw)

    # -- how

    def _get_workflow(self, instance: InstanceLike) -> Reply[views.WorkflowInstance]:
        def read(reader: Reader) -> views.WorkflowInstance:
            tracked = self._tracked_workflow(reader, checked_instance(instance))
            header = tracked.header
            first = reader.events(header.id, limit=1)[0]
            given = cast("dict[str, object]", getattr(tracked.program.decode(first), "input", {}))
            has_begun = bool(_begun(reader, [header]))
            return views.workflow_instance(header, cast("State", tracked.state), given=given, has_begun=has_begun)

        return self._look(read)

    def _tell(self, instance: InstanceLike, command: object, *, actor: str = "", comment: str = "") -> Reply[Outcome]:
        try:
            address = self._place(instance)
        except HoldfastError as error:
            return failed(error)
        return self._command(address, command, actor=actor, comment=comment, may_create=False)

    def _after(self, told: Reply[Outcome], instance: InstanceLike) -> Reply[str]:
        """The status of an instance once it has ended, if a command for it was accepted."""
        reply: EndReply[str] = self._end_reply(instance)

        def wait() -> None:
            error = told.exception()
            if error is not None:
                reply.set_error(error)
            else:
                self._wait(instance, reply, _bring_status)

        told.when_brought(wait)
        return reply

    def _end_reply(self, instance: InstanceLike) -> EndReply[T]:
        return self._endings.reply(partial(self._standing, instance))

    def _standing(self, instance: InstanceLike) -> str:
        """Where a workflow stands, for a caller who waits for its end in vain; that caller does not wait much longer for this."""

        def look(reader: Reader) -> str:
            tracked = self._tracked_workflow(reader, checked_instance(instance))
            is_held = bool(self._service.maintenance)
            return standing(
                cast("State", tracked.state), self._graph(tracked.header), work=self._work(), is_held=is_held
            )

        try:
            return self._look(look).result(_LOOK_SECONDS)
        except (HoldfastError, TimeoutError) as error:
            return f"where it stands could not be found out: {error}"

    def _work(self) -> Work:
        if not self._service.has_threads:
            return "driven"
        if self._service.has_worker:
            return "here"
        moment = self._service.shared.clock.judge()
        return (
            "elsewhere"
            if self._service.operate(lambda parts: parts.workers().live(moment), may_repeat=True)
            else "nowhere"
        )

    def _wait(self, instance: InstanceLike, reply: EndReply[T], bring: Bring[T]) -> None:
        try:
            identity = checked_instance(instance)
            self._service.check_process()
            self._service.store.refuse_inside()
        except HoldfastError as error:
            reply.set_error(error)
        else:
            self._endings.wait(self.tenant, identity, reply, bring)

    def _bring_result(self, ending: Ending, reply: Reply[object]) -> None:
        if ending.summary is not None:
            answered(reply, lambda: self._result(ending))
        else:  # Another process ended it, or nobody remembers how.
            self._read(lambda: self._result(ending), reply)

    def _result(self, ending: Ending) -> object:
        header = ending.header
        final = ending.summary or self._final_state(header.id)
        assert isinstance(final, FinalState)
        if header.status == "completed":
            return msgspec.json.decode(final.result)
        raise UnfinishedError(instance=str(header.id), status=header.status, reason=final.error or header.reason)

    def _birthplace(self, name: str, key: str) -> Address:
        if key:
            return Address(tenant=self.tenant, definition=name, key=key)
        shared = self._service.shared
        identity = InstanceId(shared.chance.new_id(shared.clock.now()))
        return Address(tenant=self.tenant, definition=name, instance=identity)

    def _receipt(self, name: str, key: str) -> ReceiptKey | None:
        # No instance has this name: a definition's own never holds a percent sign that stands for nothing.
        return ReceiptKey(self.tenant, f"%start:{name}", key) if key else None

    def _place(self, instance: InstanceLike) -> Address:
        return Address(tenant=self.tenant, instance=checked_instance(instance))

    def _final_state(self, identity: InstanceId) -> FinalState | None:
        with self._reader.look() as reader:
            return final_state(self._tracked_workflow(reader, identity).state)

    def _tracked_workflow(self, reader: Reader, identity: InstanceId) -> CachedInstance:
        tracked = self._folded(reader, self._place(identity))
        if tracked is None or not isinstance(tracked.state, State):
            raise NotFoundError("workflow instance", identity)
        return tracked

    def _shown(self, reader: Reader, header: Header, rows: Sequence[StoredStep]) -> list[views.Step]:
        """The steps of a workflow in the words of its front end."""
        effects, _ = reader.work(header.id)
        called = views.called_steps(effects, self._registry.library.speaker)
        letters = reader.dead_letters(instance=header.id, source="step", limit=_LARGEST_PAGE)
        dead = {letter.number for letter in letters}
        words = words_of(header.kind)
        return views.steps(rows, words, called=called, dead=dead, is_paused=header.status == "paused")

    def _graph(self, header: Header) -> Graph:
        return self._registry.library.graph(self.tenant, header.definition, header.definition_version)


def _several(status: object) -> tuple[str, ...]:
    """One word or several, as they were given: whether there are such words is seen later."""
    if isinstance(status, Iterable) and not isinstance(status, str):
        return tuple(status)
    return cast("tuple[str, ...]", () if status == "" else (status,))


def _workflow(reader: Reader, instance: InstanceLike) -> Header:
    """The row of a workflow's instance."""
    identity = checked_instance(instance)
    found = reader.headers([identity])
    if not found or found[0].kind not in _KINDS:
        raise NotFoundError("workflow instance", identity)
    return found[0]


def _begun(reader: Reader, headers: Sequence[Header]) -> set[InstanceId]:
    """Those that somebody has worked on, or has in hand."""
    idle = [header.id for header in headers if not header.begun]
    held = reader.in_hand(idle) if idle else set()
    return {header.id for header in headers if header.begun or header.id in held}


def _instance_of(outcome: Outcome) -> InstanceId:
    assert outcome.instance is not None, "a start that was accepted has an instance"
    return outcome.instance


def _milliseconds(delay: timedelta | float) -> int:
    try:
        milliseconds = round(1000 * (delay.total_seconds() if isinstance(delay, timedelta) else delay))
        timedelta(milliseconds=milliseconds)  # The longest one is too long once it was rounded.
    except (TypeError, ValueError, OverflowError):
        raise PayloadError(
            f"the delay must be a timedelta or a number of seconds that the calendar has room for, not {delay!r}"
        ) from None
    if milliseconds < 0:
        raise PayloadError(f"the delay must not be negative, not {delay!r}")
    return milliseconds


def _bring_status(ending: Ending, reply: Reply[str]) -> None:
    reply.set_result(ending.header.status)
