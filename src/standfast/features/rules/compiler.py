"""From the steps of a rules file to a graph: every step is a node of its own name, what it executes stands before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from standfast.errors import ConfigurationError, DefinitionError, Diagnostic, ExpressionError, indefinite
from standfast.expressions import ExpressionOptions, Spelling, parse
from standfast.expressions.model.suggestions import suggestion
from standfast.features.rules import steps as s
from standfast.graph.compiler import compile_graph
from standfast.graph.definition import Definition
from standfast.graph.model import (
    FALSE,
    OK,
    TIMEOUT,
    TRUE,
    Awaited,
    ConditionOp,
    Edge,
    EndOp,
    EventTrigger,
    Graph,
    HandlerCall,
    HumanOp,
    Node,
    NotificationOp,
    Policies,
    RetryRule,
    Stored,
    TaskOp,
    WaitEventsOp,
    WaitTimerOp,
)
from standfast.graph.nodes.notification import BODY, ROLE, SUBJECT
from standfast.graph.status_words.rules import ALLOWED, APPROVAL_REJECTED, BLOCKED
from standfast.graph.values.approver_rules import ROLE as ASK_ROLE
from standfast.graph.values.approver_rules import USER as ASK_USER
from standfast.graph.values.approver_rules import Agree, Ask
from standfast.kernel.codec.unique_keys import RepeatedNameError, distinct
from standfast.machine.model.queries.resume_points import action_name

APPROVED, REJECTED = "approved", "rejected"

_JSON = "application/json"
_POLICIES = Policies(on_failure="compensate", on_cancel="none", on_no_edge="complete")
"""A failed step makes the run `failed`; rules undo nothing."""
_OPTIONS = ExpressionOptions(
    root="input", namespaces=frozenset({"input", "now", "actor", "approval", "event", "resume"})
)
_DATA = ExpressionOptions(root="input", namespaces=frozenset({"input"}))
"""For texts and keys: rows are made again from the history, which does not tell what else there was."""
_MATCH = ExpressionOptions(root="input", namespaces=frozenset({"input", "event"}))
"""For conditions on events: as everywhere a bare name is one of the data; what the event brings is under `event`."""
_USER = "user:"


def load_rules(data: Mapping[str, object] | str | bytes) -> Definition:
    """The definition of a rules file, given as JSON or as plain data; DefinitionError with every finding.

    It is registered like any other: `engine.register(load_rules(text))`.
    """
    fields, text = _plain(data)
    reader = s.RuleReader()
    rules = reader.rules(fields)
    if reader.found:
        raise DefinitionError(rules.workflow_id or "the workflow", reader.found)
    graph = _Compiler(rules).graph()
    return Definition(graph=graph, source=text, media_type=_JSON, description=rules.name, words={"name": rules.name})


def _plain(data: object) -> tuple[Mapping[str, object], bytes]:
    """The file as plain data, and as its author wrote it."""
    if isinstance(data, Mapping):
        return data, msgspec.json.encode(data)
    if not isinstance(data, str | bytes):
        raise ConfigurationError(f"rules are given as JSON or as a dict, not as {indefinite(type(data))}")
    text = data.encode() if isinstance(data, str) else data
    try:
        fields: object = json.loads(text, object_pairs_hook=distinct)
    except RepeatedNameError as error:
        raise DefinitionError("the workflow", [Diagnostic("duplicate_key", str(error))]) from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        position = f"{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        hint = "" if b"{" in text else "; give the text of a rules file, Path(…).read_text(), and not its name"
        found = Diagnostic("not_json", f"this is no JSON: {error}{hint}", position)
        raise DefinitionError("the workflow", [found]) from error
    if not isinstance(fields, Mapping):
        finding = Diagnostic(
            "not_an_object", f"a rules file is an object with `workflow_id` and `steps`, not {fields!r}"
        )
        raise DefinitionError("the workflow", [finding])
    return fields, text


class _Compiler:
    """Makes one graph."""

    def __init__(self, rules: s.Rules) -> None:
        self._rules = rules
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []
        self._found: list[Diagnostic] = []
        self._entries = {step.id: _entry(step) for step in rules.steps}
        """The node that a step is reached by."""

    def graph(self) -> Graph:
        rules = self._rules
        for step, after in zip(rules.steps, [*rules.steps[1:], None], strict=True):
            self._execute(step)
            self._add(step, "" if after is None else after.id)
        if self._found:
            raise DefinitionError(rules.workflow_id, self._found)
        return compile_graph(
            kind="rules",
            name=rules.workflow_id,
            version=rules.version,
            entry=self._entries[rules.steps[0].id],
            nodes=self._nodes,
            edges=self._edges,
            policies=_POLICIES,
            triggers=[EventTrigger(event=rules.trigger)] if rules.trigger else (),
        )

    def _add(self, step: s.Step, after: str) -> None:
        """The node of a step, and its ways; `after` is the step that follows in the list."""
        match step:
            case s.ConditionStep():
                self._nodes.append(
                    Node(id=step.id, op=ConditionOp(expression=self._condition(step.id, step.condition)))
                )
                self._lead(step.id, TRUE, step.on_true or after)
                self._lead(step.id, FALSE, step.on_false or after)
            case s.AllowStep():
                self._nodes.append(Node(id=step.id, op=EndOp(outcome=ALLOWED)))
            case s.BlockStep(approval=None):
                self._nodes.append(Node(id=step.id, op=EndOp(outcome=BLOCKED)))
            case s.BlockStep(approval=approval):
                assert approval is not None
                self._add_approval(step, approval, after)
            case s.RuleWaitStep():
                self._add_wait(step, after)
            case s.ExecuteStep():
                self._lead(action_name(step.id, len(step.execute) - 1), OK, step.next or after)

    def _add_approval(self, step: s.BlockStep, approval: s.BlockApproval, after: str) -> None:
        is_plain = not approval.users and approval.pick == "any"
        asks = () if is_plain else _asks(approval)
        op = HumanOp(
            outcomes=(APPROVED, REJECTED),
            subject=step.reason,
            template=self._template(step.id, "reason", step.reason),
            role=approval.role if is_plain else "",
            asks=asks,
            agree=_agreed(approval, asks),
            least=approval.least,
            last_resort=approval.escalate_to,
            requires_reason=approval.requires_reason,
            self_approval=approval.self_approval,
        )
        self._nodes.append(Node(id=step.id, op=op, timeout_ms=_milliseconds(approval.timeout)))
        self._lead(step.id, APPROVED, step.on_true or after)
        if step.on_false:
            self._lead(step.id, REJECTED, step.on_false)
        else:  # The block stands.
            stands = f"{step.id}/{BLOCKED}"
            self._nodes.append(Node(id=stands, op=EndOp(outcome=BLOCKED, reason=APPROVAL_REJECTED)))
            self._edges.append(Edge(source=step.id, target=stands, on=REJECTED))
        if step.on_timeout:
            self._lead(step.id, TIMEOUT, step.on_timeout)

    def _add_wait(self, step: s.RuleWaitStep, after: str) -> None:
        if step.duration is not None:
            op: WaitTimerOp | WaitEventsOp = WaitTimerOp(duration_ms=_milliseconds(step.duration) or 0)
        else:
            key = self._read(step.id, "key", step.key, spelling="mapping", options=_DATA) if step.key else None
            match = None if step.match is None else self._condition(step.id, step.match, _MATCH)
            op = WaitEventsOp(events=(Awaited(event=step.event, key=key, match=match),))
        self._nodes.append(Node(id=step.id, op=op, timeout_ms=_milliseconds(step.timeout)))
        self._lead(step.id, OK, step.next or after)
        if step.on_timeout:
            self._lead(step.id, TIMEOUT, step.on_timeout)

    def _execute(self, step: s.Step) -> None:
        """What a step does when it is reached: a node for each action, one after the other, and then the step itself."""
        for place, entry in enumerate(step.execute):
            name = action_name(step.id, place)
            self._nodes.append(Node(id=name, op=self._op(name, entry)))
            last = place + 1 == len(step.execute)
            if not last or not isinstance(step, s.ExecuteStep):
                target = step.id if last else action_name(step.id, place + 1)
                self._edges.append(Edge(source=name, target=target))

    def _lead(self, source: str, outcome: str, step: str) -> None:
        """An edge to a step; none if there is no step: the run ends there."""
        if not step:
            return
        if step not in self._entries:
            known = [each.id for each in self._rules.steps]
            told = suggestion(step, known) or f"; there are {', '.join(known)}"
            self._found.append(
                Diagnostic("unknown_step", f"{source!r} leads to {step!r}, which is no step{told}", source)
            )
            return
        self._edges.append(Edge(source=source, target=self._entries[step], on=outcome))

    def _condition(self, step: str, condition: object, options: ExpressionOptions | None = None) -> Stored:
        if isinstance(condition, str):
            return self._read(step, "condition", condition, spelling="native", options=options or _OPTIONS)
        return self._read(step, "condition", json.dumps(condition), spelling="json", options=options or _OPTIONS)

    def _read(self, step: str, what: str, source: str, *, spelling: Spelling, options: ExpressionOptions) -> Stored:
        try:
            return parse(source, spelling=spelling, options=options).to_data()
        except ExpressionError as error:
            self._found.append(Diagnostic("bad_expression", f"the {what} of {step!r} is wrong: {error}", step))
            return {}

    def _template(self, step: str, what: str, text: str) -> Stored | None:
        """A text with holes for values of the data; None if it has none."""
        return self._read(step, what, text, spelling="template", options=_DATA) if "{" in text else None

    def _op(self, name: str, entry: s.Entry) -> TaskOp | NotificationOp:
        """What the node of an action does."""
        if isinstance(entry, s.RuleNotification):
            return self._notice(name, entry)
        work = HandlerCall(
            handler=entry.handler,
            retry=RetryRule(max_calls=entry.attempts),
            timeout_ms=_milliseconds(entry.timeout),
            capability=entry.capability,
        )
        return TaskOp(work=work)

    def _notice(self, name: str, entry: s.RuleNotification) -> NotificationOp:
        """People are told without being waited for; the texts may have holes for values of the data."""
        written = {SUBJECT: entry.subject or entry.message, BODY: entry.message}
        read = {each: self._template(name, each, text) for each, text in written.items()}
        holes = {each: template for each, template in read.items() if template is not None}
        return NotificationOp(
            to=tuple(map(_recipient, entry.recipients)),
            subject=written[SUBJECT],
            body=written[BODY],
            templates=holes,
            channels=(entry.channel,) if entry.channel else ("in_app",),
        )


def _recipient(given: str) -> str:
    """Whom a name means: `user:ann` a user, what has an @ an address, anything else a role."""
    if given.startswith(_USER):
        return given.removeprefix(_USER)
    return given if "@" in given or given.startswith(ROLE) else f"{ROLE}{given}"


def _asks(approval: s.BlockApproval) -> tuple[Ask, ...]:
    """Whoever has the role, if there is one, and each of the users."""
    role = (Ask(by=ASK_ROLE, of=approval.role, pick=approval.pick),) if approval.role else ()
    return (*role, *(Ask(by=ASK_USER, of=each.removeprefix(_USER)) for each in approval.users))


def _agreed(approval: s.BlockApproval, asks: tuple[Ask, ...]) -> Agree | None:
    """What the graph stores of how many have to approve: with users always the rule, without them only what is not the default."""
    if approval.users:
        return approval.agree or ("all" if len(asks) > 1 else "any")
    return None if approval.agree == "any" else approval.agree


def _entry(step: s.Step) -> str:
    return action_name(step.id, 0) if step.execute else step.id


def _milliseconds(duration: timedelta | None) -> int | None:
    return None if duration is None else round(duration / timedelta(milliseconds=1))
