"""From a workflow that was found sound to a graph: every step is a node of its own name, every transition an edge, in the order of the file.

Two sorts of nodes have no step: the call that a person's answer leads to, which is named after the step and the event, and the end of
those whose time is over and who have nowhere to go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from standfast.features.process_files import expressions as f
from standfast.features.process_files.format import (
    ActionStep,
    ApprovalStep,
    Assignee,
    AwaitedSpec,
    NotificationStep,
    OperationSpec,
    RetrySpec,
    Step,
    SystemStep,
    TerminalStep,
    TransitionSpec,
    TriggerSpec,
    WaitStep,
)
from standfast.features.process_files.operations import ARGUMENTS, OWN_INVOKERS, RESPONSE_HEADERS, operation_handler
from standfast.features.process_files.outline import (
    AGAIN,
    COMPLETED,
    EXPIRED,
    FAILED,
    Asking,
    Calling,
    Outline,
)
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.graph.source_files.values import Formula, milliseconds
from standfast.graph.values.approver_rules import ROLE, RULE, USER, Ask, agreement_of_list
from standfast.graph.values.calendars import UTC_ZONE
from standfast.kernel.actor import Needed

UNANSWERED: Final = "#timeout"
"""The end of a workflow whose time is over and that says nothing of it, or that nothing follows in: it has failed."""
APPROVED: Final = "approved"
SIGNS: Final = {APPROVED: "approved_by", "rejected": "rejected_by"}
"""Where the state takes who decided."""

STEP: Final = "step"
"""In the metadata of a node that is no step of its own: the step that it belongs to."""

_Metadata = dict[str, object]


def graph_of(outline: Outline) -> g.Graph:
    """The graph of a workflow; DefinitionError if the graph's own checks find something."""
    return _Compiler(outline).graph()


class _Compiler:
    """Makes one graph."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._workflow = outline.workflow
        self._nodes: list[g.Node] = []
        self._edges: list[g.Edge] = []
        self._counts: Counter[tuple[str, str]] = Counter()
        """How many edges an outcome of a node has already: the next one is tried after them."""
        self._expired = self._workflow.on_timeout or UNANSWERED

    def graph(self) -> g.Graph:
        workflow, reached = self._workflow, self._outline.reached()
        for step in workflow.steps:
            if step.id in reached:
                self._step(step)
        deadline = milliseconds(workflow.timeout)
        on_deadline = "" if deadline is None else self._expired
        if UNANSWERED in {on_deadline, *(edge.target for edge in self._edges)}:
            self._nodes.append(g.Node(id=UNANSWERED, op=g.EndOp(status="failed")))
        rights = workflow.capabilities
        return compile_graph(
            kind="process",
            name=workflow.id,
            version=str(workflow.version),
            entry=self._outline.entry,
            nodes=self._nodes,
            edges=self._edges,
            policies=g.Policies(
                on_failure="pause",
                on_cancel="none",
                on_no_edge="fail",
                deadline_ms=deadline,
                on_deadline=on_deadline,
                chain_limit=workflow.chain_limit,
            ),
            rights=g.Rights(
                start=_needed(rights.start), cancel=_needed(rights.cancel), replaceable=workflow.replaceable
            ),
            triggers=[_trigger(each) for each in workflow.triggers],
            title=workflow.title,
        )

    def _step(self, step: Step) -> None:
        match step:
            case ActionStep() | ApprovalStep():
                self._asking(step)
            case SystemStep() | NotificationStep():
                self._calling(step)
            case WaitStep():
                self._waiting(step)
            case TerminalStep():
                op = g.EndOp(outcome=step.outcome or "")
                self._nodes.append(g.Node(id=step.id, op=op, metadata=_told(step)))

    # -- people

    def _asking(self, step: Asking) -> None:
        ways = self._outline.ways(step.id)
        answers = [way for way in ways if way.event not in {EXPIRED, FAILED}]
        outcomes = tuple(dict.fromkeys(way.event for way in answers))
        role, asks = _people(step)
        op = g.HumanOp(
            outcomes=outcomes,
            form=step.form,
            form_for=tuple(step.form_for or ()),
            subject=step.title,
            role=role,
            asks=asks,
            chain=step.chain or "",
            agree=agreement_of_list(step.agree, [each.by for each in asks]),
            least=step.least,
            approves=APPROVED if APPROVED in outcomes else "",
            requires_reason=step.requires_reason,
            self_approval=step.self_approval,
            distinct_from=tuple(step.distinct_from or ()),
            lays_over=True,
            signs={event: name for event, name in SIGNS.items() if event in outcomes},
            times=None if step.timeout is None else g.TaskTimes(due_ms=milliseconds(step.timeout)),
        )
        labels = {way.event: way.label for way in reversed(answers) if way.label}
        kind = {"type": "approval" if isinstance(step, ApprovalStep) else "action"}
        self._nodes.append(
            g.Node(
                id=step.id,
                op=op,
                timeout_ms=milliseconds(step.timeout),
                capability=_needed(step.capability),
                metadata={**_told(step), **kind, **({"labels": labels} if labels else {})},
            )
        )
        for way in answers:
            self._lead(step.id, way, on=way.event, to=way.to if step.operation is None else self._call(step, way))
        self._expire(step)

    def _call(self, step: Asking, way: TransitionSpec) -> str:
        """The call between an answer and the step that it leads to; the name of its node."""
        assert step.operation is not None
        number = self._counts[step.id, way.event] + 1
        name = f"{step.id}/{way.event}" if number == 1 else f"{step.id}/{way.event}/{number}"
        op = _task(step.operation, step.retry, step.input, step.output)
        self._nodes.append(g.Node(id=name, op=op, metadata=_arguments(step.operation, step.output) | {STEP: step.id}))
        self._edges.append(g.Edge(source=name, target=way.to))
        for failed in self._outline.ways(step.id):
            if failed.event == FAILED:
                self._lead(name, failed, on=g.ERROR, to=failed.to)
        return name

    def _expire(self, step: Asking | WaitStep) -> None:
        """Where a step leads whose time is over, or that of the whole."""
        if step.on_timeout is not None:
            self._edges.append(g.Edge(source=step.id, target=step.on_timeout, on=g.TIMEOUT))
            return
        ways = [way for way in self._outline.ways(step.id) if way.event == EXPIRED]
        for way in ways:
            self._lead(step.id, way, on=g.TIMEOUT, to=way.to)
        if not ways and step.timeout is not None:
            self._edges.append(g.Edge(source=step.id, target=self._expired, on=g.TIMEOUT))

    # -- the others

    def _calling(self, step: Calling) -> None:
        output = step.output if isinstance(step, SystemStep) else {}
        limits = [each for each in map(milliseconds, (step.timeout, step.stuck_after)) if each is not None]
        op = _task(step.operation, step.retry, step.input, output, timeout=min(limits, default=None))
        if isinstance(step, NotificationStep):
            op = msgspec.structs.replace(op, detached=True)
        metadata = _told(step) | _arguments(step.operation, output)
        if isinstance(step, NotificationStep):
            metadata["type"] = "notification"
        for way in self._outline.ways(step.id):
            match way.event:
                case event if event == AGAIN:
                    metadata[AGAIN] = way.guard or ""
                case event if event == FAILED:
                    self._lead(step.id, way, on=g.ERROR, to=way.to)
                case _:
                    self._lead(step.id, way, on=g.OK, to=way.to)
                    if isinstance(step, NotificationStep):
                        self._lead(step.id, way, on=g.ERROR, to=way.to)
        is_closed = not any(way.condition is None and way.guard is None for way in self._outline.ways(step.id))
        if (
            isinstance(step, NotificationStep) and is_closed
        ):  # It counts as done in any case, and what nothing follows has failed.
            last = self._counts[step.id, g.ERROR]
            self._edges.append(g.Edge(source=step.id, target=UNANSWERED, on=g.ERROR, priority=last))
        self._nodes.append(g.Node(id=step.id, op=op, metadata=metadata))

    def _waiting(self, step: WaitStep) -> None:
        timeout = milliseconds(step.timeout)
        self._nodes.append(g.Node(id=step.id, op=_wait(step), timeout_ms=timeout, metadata=_told(step)))
        ways = [way for way in self._outline.ways(step.id) if way.event != EXPIRED]
        # The event's own way stands before the one for any end.
        for way in sorted(ways, key=lambda way: way.event == COMPLETED):
            self._lead(step.id, way, on=g.ERROR if way.event == FAILED else g.OK, to=way.to)
        if step.event is not None or step.events:
            self._expire(step)

    def _lead(self, source: str, way: TransitionSpec, *, on: str, to: str) -> None:
        self._edges.append(
            g.Edge(
                source=source,
                target=to,
                on=on,
                when=None if way.condition is None else f.condition_of(way.condition),
                capability=way.guard or "",
                priority=self._counts[source, on],
            )
        )
        self._counts[source, on] += 1


def _task(
    operation: OperationSpec | str,
    retry: RetrySpec,
    given: Mapping[str, Formula],
    kept: Mapping[str, Formula],
    *,
    timeout: int | None = None,
) -> g.TaskOp:
    return g.TaskOp(
        work=g.HandlerCall(
            handler=handler_of(operation),
            retry=_retry(retry),
            timeout_ms=timeout,
            capability=(operation.capability or "") if isinstance(operation, OperationSpec) else "",
        ),
        input={name: f.mapping_of(value, "given") for name, value in given.items()},
        output={name: f.mapping_of(value, "kept") for name, value in kept.items()},
    )


def _people(step: Asking) -> tuple[str, tuple[Ask, ...]]:
    """Who is asked: one role, by its name, or all those that the step names."""
    asked = step.assignees or ([step.assignee] if step.assignee is not None else [])
    match asked:
        case [Assignee(role=str(role), weight=1, pick="any")]:
            return role, ()
        case _:
            return "", tuple(map(_ask, asked))


def _ask(assignee: Assignee) -> Ask:
    rule = None if assignee.expression is None else f.mapping_of(assignee.expression, "data")
    by, of = next(
        (by, of)
        for by, of in (
            (ROLE, assignee.role),
            (USER, assignee.user),
            (RULE, assignee.expression),
            (assignee.resolver or "", assignee.of or ""),
        )
        if of is not None
    )
    return Ask(by=by, of=of, rule=rule, weight=assignee.weight, pick=assignee.pick)


def _wait(step: WaitStep) -> g.WaitTimerOp | g.WaitEventOp | g.WaitEventsOp:
    if step.event is not None and step.key is None and step.condition is None:
        return g.WaitEventOp(signal=step.event)
    if step.event is not None:
        return g.WaitEventsOp(events=(_awaited(step.event, step),))
    if step.events:
        return g.WaitEventsOp(events=tuple(_awaited(each.event, each) for each in step.events), need=step.need)
    if step.cron is not None:
        return g.WaitTimerOp(cron=step.cron, time_zone=step.time_zone or UTC_ZONE)
    if step.until is not None:
        return g.WaitTimerOp(until=f.mapping_of(step.until, "given"))
    return g.WaitTimerOp(duration_ms=milliseconds(step.duration) or 0)


def _awaited(event: str, part: WaitStep | AwaitedSpec) -> g.Awaited:
    return g.Awaited(
        event=event,
        key=None if part.key is None else f.mapping_of(part.key, "data"),
        match=None if part.condition is None else f.condition_of(part.condition, "awaited"),
        name=(part.name or "") if isinstance(part, AwaitedSpec) else "",
    )


def _needed(written: str | list[str] | None) -> Needed:
    """A capability, or several of which all are needed; one alone is not a list."""
    if written is None or isinstance(written, str):
        return written or ""
    several = tuple(dict.fromkeys(written))
    return several[0] if len(several) == 1 else several


def _trigger(trigger: TriggerSpec) -> g.EventTrigger:
    given = {name: f.mapping_of(value, "trigger") for name, value in trigger.input.items()}
    return g.EventTrigger(
        event=trigger.event,
        key=None if trigger.key is None else f.mapping_of(trigger.key, "trigger"),
        when=None if trigger.condition is None else f.condition_of(trigger.condition, "trigger"),
        input=given or None,
    )


def handler_of(operation: OperationSpec | str) -> str:
    """The name of the handler that an operation is called by: its own for the application's handlers, else the invoker's before it."""
    if isinstance(operation, str):
        return operation
    return operation.name if operation.invoker in OWN_INVOKERS else operation_handler(operation.invoker, operation.name)


def _retry(retry: RetrySpec) -> g.RetryRule:
    return g.RetryRule(
        max_calls=retry.attempts,
        delay_ms=milliseconds(retry.delay) or 0,
        backoff=retry.backoff,
        factor_percent=round(retry.factor * 100),
        cap_ms=milliseconds(retry.cap) or 0,
        jitter_percent=round(retry.jitter * 100),
    )


def _told(step: Step) -> _Metadata:
    """What people are told of a step."""
    return {name: text for name, text in (("title", step.title), ("description", step.description)) if text}


def _arguments(operation: OperationSpec | str, kept: Mapping[str, Formula]) -> _Metadata:
    """What an invoker has to know besides: what it is told as it is, and the headers of an answer that somebody wants."""
    if not isinstance(operation, OperationSpec):
        return {}
    headers = [] if operation.invoker in OWN_INVOKERS else f.headers_of(kept.values())
    said: _Metadata = {ARGUMENTS: operation.arguments} if operation.arguments else {}
    return said | ({RESPONSE_HEADERS: headers} if headers else {})
