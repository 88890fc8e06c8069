"""What the checks refuse and what they let pass: every rule by its code, and all findings at once."""

from __future__ import annotations

import ast
import inspect
import time
from collections.abc import Callable, Sequence
from random import Random
from types import ModuleType
from typing import Literal, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machine.broken_documents import BROKEN_DOCUMENTS
from standfast.errors import Diagnostic
from standfast.expressions import parse
from standfast.graph import checks, document_checks
from standfast.graph import model as g
from standfast.graph import scopes as flow
from standfast.graph.checks import check_graph
from standfast.graph.model import Edge, Kind, Node, Op, Policies
from standfast.graph.nodes.end import END_STATUSES
from standfast.graph.nodes.parallel import STRATEGIES
from standfast.graph.values import calendars, forms
from standfast.graph.values import task_times as times
from standfast.graph.values import value_checks as values
from standfast.graph.values.approver_rules import Ask
from standfast.graph.values.value_checks import BACKOFFS, LONGEST_MS, LONGEST_NAME
from support.untimed import untimed

QUESTION = parse("input.total > 3").to_data()
LIST = parse("input.lines", spelling="mapping").to_data()


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What is given to the checks."""

    nodes: list[Node]
    edges: list[Edge] = []
    entry: str = "a"
    kind: Kind = "saga"
    name: str = "order"
    version: str = "1"
    policies: Policies = Policies()


def findings(draft: Draft) -> list[Diagnostic]:
    """Everything that is wrong with a draft."""
    return check_graph(**{name: getattr(draft, name) for name in draft.__struct_fields__})


def codes(draft: Draft) -> set[str]:
    """The rules that a draft breaks."""
    return {finding.code for finding in findings(draft)}


def work(handler: str = "h", *, once: bool = False, timeout_ms: int | None = None, **retry: object) -> g.HandlerCall:
    """A call of a handler."""
    return g.HandlerCall(handler=handler, once=once, timeout_ms=timeout_ms, retry=g.RetryRule(**retry))  # type: ignore[arg-type]


def node(name: str, op: Op | None = None, **fields: object) -> Node:
    """A node; a task if nothing else is said."""
    return Node(id=name, op=op or g.TaskOp(work=work()), **fields)  # type: ignore[arg-type]


def way(text: str, **fields: object) -> Edge:
    """An edge written as `a b`, or `a b outcome`."""
    source, target, *rest = text.split(" ")
    return Edge(source=source, target=target, on=rest[0] if rest else g.OK, **fields)  # type: ignore[arg-type]


def ways(*texts: str) -> list[Edge]:
    """Edges."""
    return [way(text) for text in texts]


def alone(op: Op | None = None, **fields: object) -> Draft:
    """A workflow of one node."""
    return Draft(nodes=[node("a", op, **fields)])


def followed(op: Op, *texts: str, **fields: object) -> Draft:
    """A node with edges to a task."""
    return Draft(nodes=[node("a", op, **fields), node("b")], edges=ways(*texts))


def forked(
    *extra: Node, edges: Sequence[str] = (), join: g.JoinOp | None = None, split: g.SplitOp | None = None
) -> Draft:
    """A fork `a` into `b` and `c`, which meet at `j`, and more."""
    nodes = [node("a", split or g.SplitOp()), node("b"), node("c"), node("j", join or g.JoinOp(split="a")), *extra]
    return Draft(nodes=nodes, edges=ways("a b branch", "a c branch", "b j", "c j", *edges))


def forking(text: str) -> Draft:
    """A fork into `b` that also leads to `c`."""
    return Draft(nodes=[node("a", g.SplitOp()), node("b"), node("c")], edges=ways("a b branch", text))


def each(item: str = "item", **fields: object) -> g.SplitOp:
    """A fork over a list."""
    return g.SplitOp(items=LIST, item=item, **fields)  # type: ignore[arg-type]


def listed(outer: g.SplitOp, inner: g.SplitOp) -> Draft:
    """A list inside a list."""
    nodes = [
        node("a", outer),
        node("in", inner),
        node("step"),
        node("k", g.JoinOp(split="in")),
        node("j", g.JoinOp(split="a")),
    ]
    return Draft(nodes=nodes, edges=ways("a in branch", "in step branch", "step k", "k j"))


def deep(depth: int) -> Draft:
    """Lists in lists in lists."""
    nodes = [node(f"f{place}", each(f"item{place}")) for place in range(depth)]
    nodes += [node(f"j{place}", g.JoinOp(split=f"f{place}")) for place in range(depth)]
    edges = [way(f"f{place} f{place + 1} branch") for place in range(depth - 1)]
    edges += [way(f"j{place + 1} j{place}") for place in range(depth - 1)]
    edges += ways(f"f{depth - 1} x branch", f"x j{depth - 1}")
    return Draft(nodes=[*nodes, node("x")], edges=edges, entry="f0")


ANN = Ask(by="user", of="ann")
CHANGED = {**QUESTION, "hash": "0" * 64}


def told(**fields: object) -> g.NotificationOp:
    """A notice with something else in it."""
    return g.NotificationOp(**{"to": ("ann",), "subject": "news", **fields})  # type: ignore[arg-type]


def timed(**fields: object) -> g.HumanOp:
    """A question with these times."""
    return g.HumanOp(role="r", times=g.TaskTimes(**fields))  # type: ignore[arg-type]


ENDLESS: dict[str, object] = {"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}
GROWING: dict[str, object] = {
    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 10} for n in range(4)} | {"d4": True},
    "$ref": "#/$defs/d0",
}
DEEP: dict[str, object] = {}
for _ in range(20):
    DEEP = {"items": DEEP}


BROKEN: dict[str, tuple[str, str, Draft]] = {
    # -- the whole
    "no steps": ("empty", "", Draft(nodes=[])),
    "no name": ("unnamed_workflow", "", Draft(nodes=[node("a")], name=" ")),
    "no tokens": ("max_tokens", "", Draft(nodes=[node("a")], policies=Policies(max_tokens=0))),
    "no data": ("max_bytes", "", Draft(nodes=[node("a")], policies=Policies(max_bytes=0))),
    "no items": ("most", "a", msgspec.structs.replace(forked(), nodes=forked(split=g.SplitOp(most=0)).nodes)),
    "no version": ("no_version", "", Draft(nodes=[node("a")], version="")),
    "unknown kind": ("kind", "", Draft(nodes=[node("a")], kind="flow")),  # type: ignore[arg-type]
    "deadline of nothing": ("deadline", "", Draft(nodes=[node("a")], policies=Policies(deadline_ms=0))),
    "endless deadline": ("deadline", "", Draft(nodes=[node("a")], policies=Policies(deadline_ms=LONGEST_MS + 1))),
    "negative grace": ("stop_grace", "", Draft(nodes=[node("a")], policies=Policies(stop_grace_ms=-1))),
    "no chain": ("chain_limit", "", Draft(nodes=[node("a")], policies=Policies(chain_limit=0))),
    "no visits": ("max_visits", "", Draft(nodes=[node("a")], policies=Policies(max_visits=0))),
    "on_failure": ("on_failure", "", Draft(nodes=[node("a")], policies=Policies(on_failure="x"))),  # type: ignore[arg-type]
    "on_cancel": ("on_cancel", "", Draft(nodes=[node("a")], policies=Policies(on_cancel="x"))),  # type: ignore[arg-type]
    "on_reject": ("on_reject", "", Draft(nodes=[node("a")], policies=Policies(on_reject="x"))),  # type: ignore[arg-type]
    "on_no_edge": ("on_no_edge", "", Draft(nodes=[node("a")], policies=Policies(on_no_edge="x"))),  # type: ignore[arg-type]
    # -- names
    "two of a name": ("duplicate_step", "b", Draft(nodes=[node("a"), node("b"), node("b")], edges=ways("a b"))),
    "a compensation named as a step": (
        "duplicate_step",
        "b",
        Draft(nodes=[node("a", compensation=work(), compensation_name="b"), node("b")], edges=ways("a b")),
    ),
    "two compensations of a name": (
        "duplicate_step",
        "u",
        Draft(nodes=[node(name, compensation=work(), compensation_name="u") for name in "ab"], edges=ways("a b")),
    ),
    "a compensation named as its step": (
        "duplicate_step",
        "a",
        alone(compensation=work(), compensation_name="a"),
    ),
    "no name of a step": ("unnamed_step", "", Draft(nodes=[node("")], entry="")),
    "a blank name": ("unnamed_step", " ", Draft(nodes=[node(" ")], entry=" ")),
    "reserved": ("reserved_name", "cond#x", Draft(nodes=[node("cond#x")], entry="cond#x")),
    "reserved compensation": ("reserved_name", "cond#x", alone(compensation=work(), compensation_name="cond#x")),
    "a long name": ("long_name", "n" * 201, Draft(nodes=[node("n" * 201)], entry="n" * 201)),
    "a long name of the whole": ("long_name", "", Draft(nodes=[node("a")], name="n" * 201)),
    "a name of many bytes": ("long_name", "𝄞" * 129, Draft(nodes=[node("𝄞" * 129)], entry="𝄞" * 129)),
    "a handler of many bytes": ("long_name", "a", alone(g.TaskOp(work=work("𝄞" * 129)))),
    "a name of many bytes for the whole": ("long_name", "", Draft(nodes=[node("a")], name="𝄞" * 129)),
    "a name that leads elsewhere": ("misleading_name", "", Draft(nodes=[node("a")], name="../../x")),
    "a version that leads elsewhere": ("misleading_name", "", Draft(nodes=[node("a")], version="1/..")),
    "a line break in a name": ("hidden_character", "a\nb", Draft(nodes=[node("a\nb")], entry="a\nb")),
    "a mark that turns the text": ("hidden_character", "a\u202eb", Draft(nodes=[node("a\u202eb")], entry="a\u202eb")),
    "a control in a handler": ("hidden_character", "a", alone(g.TaskOp(work=work("h\x00")))),
    "an edge to nowhere": ("unknown_step", "a", Draft(nodes=[node("a")], edges=ways("a gone"))),
    "an edge from nowhere": ("unknown_step", "gone", Draft(nodes=[node("a")], edges=ways("gone a"))),
    "an entry that is not there": ("unknown_entry", "x", Draft(nodes=[node("a")], entry="x")),
    # -- nodes
    "priority too high": ("priority", "a", alone(priority=101)),
    "priority too low": ("priority", "a", alone(priority=-1)),
    "priority of a compensation": ("priority", "a", alone(compensation=work(), compensation_priority=101)),
    "a fraction": ("priority", "a", alone(priority=0.5)),
    "no calls": ("attempts", "a", alone(g.TaskOp(work=work(max_calls=0)))),
    "negative calls": ("attempts", "a", alone(g.TaskOp(work=work(max_calls=-1)))),
    "negative calls of a compensation": ("attempts", "a", alone(compensation=work(max_calls=-1))),
    "negative delay": ("retry_delay", "a", alone(g.TaskOp(work=work(delay_ms=-1)))),
    "negative delay of a compensation": ("retry_delay", "a", alone(compensation=work(delay_ms=-1))),
    "starting backwards": ("start_after", "a", alone(g.TaskOp(work=g.HandlerCall(handler="h", start_after_ms=-1)))),
    "undoing backwards": ("start_after", "a", alone(compensation=g.HandlerCall(handler="h", start_after_ms=-1))),
    "negative cap": ("retry_cap", "a", alone(g.TaskOp(work=work(cap_ms=-1)))),
    "shrinking factor": ("retry_factor", "a", alone(g.TaskOp(work=work(factor_percent=99)))),
    "negative jitter": ("retry_jitter", "a", alone(g.TaskOp(work=work(jitter_percent=-1)))),
    "more jitter than delay": ("retry_jitter", "a", alone(g.TaskOp(work=work(jitter_percent=101)))),
    "unknown backoff": ("retry_backoff", "a", alone(g.TaskOp(work=work(backoff="wild")))),
    "an answer that nobody waits for": (
        "detached",
        "a",
        alone(g.TaskOp(work=work(), detached=True, output={"x": LIST})),
    ),
    "a transaction that nobody waits for": (
        "detached",
        "a",
        alone(g.TaskOp(work=g.HandlerCall(handler="h", transactional=True), detached=True)),
    ),
    "once, and again": ("once", "a", alone(g.TaskOp(work=work(once=True, max_calls=2)))),
    "once, and again, to undo": ("once", "a", alone(compensation=work(once=True, max_calls=3))),
    "no handler": ("no_handler", "a", alone(g.TaskOp(work=work("")))),
    "the engine's own handler": ("reserved_handler", "a", alone(g.TaskOp(work=work("$engine")))),
    "no handler to undo": ("no_handler", "a", alone(compensation=work(" "))),
    "no time for the handler": ("timeout", "a", alone(g.TaskOp(work=work(timeout_ms=0)))),
    "no time for the step": ("timeout", "a", alone(g.HumanOp(), timeout_ms=0)),
    "a timeout where nobody waits": ("timeout", "a", alone(g.SavePointOp(), timeout_ms=5)),
    "a timeout of a task": ("timeout", "a", alone(g.TaskOp(work=work()), timeout_ms=5)),
    "a timeout of a timer": ("timeout", "a", alone(g.WaitTimerOp(duration_ms=1), timeout_ms=5)),
    "waiting backwards": ("wait_duration", "a", alone(g.WaitTimerOp(duration_ms=-1))),
    "no time to wait for": ("wait_time", "a", alone(g.WaitTimerOp())),
    "a rule that cannot be read": ("cron", "a", alone(g.WaitTimerOp(cron="daily"))),
    "a rule that never fires": ("cron_never", "a", alone(g.WaitTimerOp(cron="0 0 30 2 *"))),
    "no such zone": ("time_zone", "a", alone(g.WaitTimerOp(cron="* * * * *", time_zone="Mars"))),
    "a zone without a rule": ("time_zone", "a", alone(g.WaitTimerOp(duration_ms=1, time_zone="Europe/Berlin"))),
    "a calendar without a duration": ("calendar", "a", alone(g.WaitTimerOp(cron="* * * * *", calendar="house"))),
    "an instant that cannot be read": ("expression", "a", alone(g.WaitTimerOp(until={}))),
    "a handler of the engine's own": ("reserved_handler", "a", alone(g.TaskOp(work=work("$engine")))),
    "no event": ("no_event", "a", alone(g.WaitEventsOp(events=()))),
    "an event without a name": ("no_event", "a", alone(g.WaitEventsOp(events=(g.Awaited(event=""),)))),
    "two events of one name": ("duplicate_event", "a", alone(g.WaitEventsOp(events=(g.Awaited(event="e"),) * 2))),
    "more events than there are": ("event_need", "a", alone(g.WaitEventsOp(events=(g.Awaited(event="e"),), need=2))),
    "a key that cannot be read": ("expression", "a", alone(g.WaitEventsOp(events=(g.Awaited(event="e", key={}),)))),
    "no signal": ("no_signal", "a", alone(g.WaitEventOp(signal=""))),
    "no workflow to call": ("no_definition", "a", alone(g.CallOp(definition=""))),
    "unknown end": ("end_status", "a", alone(g.EndOp(status="gone"))),  # type: ignore[arg-type]
    "an outcome of what ends badly": ("outcomes", "a", alone(g.EndOp(status="failed", outcome="blocked"))),
    "no branch at a time": (
        "limit",
        "a",
        msgspec.structs.replace(forked(), nodes=forked(split=g.SplitOp(limit=0)).nodes),
    ),
    "an item that is no name": ("item_name", "a", followed(each("my item"), "a b branch")),
    "an item named as a step": ("item_clash", "a", followed(each("b"), "a b branch")),
    "an item named as the one around it": ("item_clash", "in", listed(each("x"), each("x"))),
    "a fraction in metadata": ("metadata", "a", alone(metadata={"x": [{"y": 0.5}]})),
    "a fraction in metadata of a compensation": (
        "metadata",
        "a",
        alone(compensation=work(), compensation_metadata={"x": 0.5}),
    ),
    "a date in metadata": ("metadata", "a", alone(metadata={"x": object()})),
    "a key that is no text": ("metadata", "a", alone(metadata={"x": {1: 2}})),
    "a number that JSON cannot keep": ("metadata", "a", alone(metadata={"x": 2**53})),
    "a tuple": ("metadata", "a", alone(metadata={"x": (1,)})),
    "half a character": ("not_storable", "a", alone(metadata={"x": "\ud800"})),
    "a region that is no text": ("not_storable", "a", alone(region=5)),
    "a condition that was changed": ("expression", "a", alone(g.ConditionOp(expression=CHANGED))),
    "a condition that is none": ("expression", "a", alone(g.ConditionOp(expression={}))),
    "a subject that cannot be read": ("expression", "a", alone(g.HumanOp(template={}))),
    "a value to show that cannot be read": ("expression", "a", alone(g.HumanOp(shows={"x": CHANGED}))),
    "a rejection without a meaning": ("on_reject", "a", alone(g.HumanOp(on_reject="x"))),  # type: ignore[arg-type]
    "a notice to nobody": ("recipients", "a", alone(told(to=()))),
    "a notice to somebody without a name": ("recipients", "a", alone(told(to=("role:",)))),
    "a notice without a channel": ("channel", "a", alone(told(channels=()))),
    "a notice by a channel without a name": ("channel", "a", alone(told(channels=("",)))),
    "a notice about nothing": ("subject", "a", alone(told(subject=" "))),
    "a notice that goes on and on": ("body", "a", alone(told(body="x" * 20_001))),
    "a template of no text": (
        "expression",
        "a",
        alone(told(templates={"to.1": parse("input.x", spelling="mapping").to_data()})),
    ),
    "a template that cannot be read": ("expression", "a", alone(told(templates={"body": {}}))),
    "a question by a channel without a name": ("channel", "a", alone(g.HumanOp(role="r", channels=("",)))),
    "a form that is none": ("form", "a", alone(g.HumanOp(form={"type": "wish"}))),
    "a form from elsewhere": ("form", "a", alone(g.HumanOp(form={"$ref": "https://example.com/form.json"}))),
    "a form that refers to nothing": ("form", "a", alone(g.HumanOp(form={"$ref": "#/$defs/x"}))),
    "a form within itself": ("form", "a", alone(g.HumanOp(form=ENDLESS))),
    "a form of another draft": (
        "form",
        "a",
        alone(g.HumanOp(form={"$schema": "http://json-schema.org/draft-07/schema#"})),
    ),
    "a form that grows": ("form", "a", alone(g.HumanOp(form=GROWING))),
    "a form that is too deep": ("form", "a", alone(g.HumanOp(form=DEEP))),
    "a form that is too large": ("form", "a", alone(g.HumanOp(form={"description": "x" * 65_536}))),
    "a pattern that looks back": ("form", "a", alone(g.HumanOp(form={"pattern": r"(\w)\1"}))),
    "a pattern that cannot be read": ("form", "a", alone(g.HumanOp(form={"pattern": "("}))),
    "names by pattern": ("form", "a", alone(g.HumanOp(form={"patternProperties": {"^a": True}}))),
    "a form for no outcome": ("form", "a", alone(g.HumanOp(form={}, form_for=("maybe",)))),
    "outcomes without a form": ("form", "a", alone(g.HumanOp(form_for=("confirmed",)))),
    "due before it is asked": ("due", "a", alone(timed(due_ms=0))),
    "a reminder before the question": ("remind", "a", alone(timed(reminders_ms=(0,)))),
    "reminders that do not rise": ("remind", "a", alone(timed(reminders_ms=(5, 3)))),
    "too many reminders": ("remind", "a", alone(timed(reminders_ms=tuple(range(1, 102))))),
    "reminders without rest": ("remind", "a", alone(timed(every_ms=1000))),
    "reminders by two rules": ("remind", "a", alone(timed(reminders_ms=(5,), every_ms=60_000))),
    "escalation to nobody": ("escalate", "a", alone(timed(escalation=(g.Rung(after_ms=5),)))),
    "escalation to two": ("escalate", "a", alone(timed(escalation=(g.Rung(after_ms=5, role="r", user="u"),)))),
    "escalation to no name": ("escalate", "a", alone(timed(escalation=(g.Rung(after_ms=5, role=" "),)))),
    "escalation to no outcome": ("escalate", "a", alone(timed(escalation=(g.Rung(after_ms=5, outcome="maybe"),)))),
    "escalation at once": ("escalate", "a", alone(timed(escalation=(g.Rung(after_ms=0, role="r"),)))),
    "escalation without time": (
        "escalate",
        "a",
        alone(timed(escalation=(g.Rung(after_ms=1, role="r", timeout_ms=0),))),
    ),
    "a ladder that does not rise": (
        "escalate",
        "a",
        alone(timed(escalation=(g.Rung(after_ms=5, role="r"), g.Rung(after_ms=5, role="s")))),
    ),
    "a reminder after the timeout": ("remind", "a", alone(timed(reminders_ms=(5, 9)), timeout_ms=9)),
    "escalation after the timeout": (
        "escalate",
        "a",
        alone(timed(escalation=(g.Rung(after_ms=20, role="r"),)), timeout_ms=9),
    ),
    "a rung after the time that another one gives": (
        "escalate",
        "a",
        alone(
            timed(escalation=(g.Rung(after_ms=5, role="r", timeout_ms=10), g.Rung(after_ms=15, user="u"))), timeout_ms=9
        ),
    ),
    "a ladder beyond the end": (
        "escalate",
        "a",
        alone(timed(escalation=(g.Rung(after_ms=5, outcome="rejected"), g.Rung(after_ms=6, role="s")))),
    ),
    "a word for no items": ("on_empty", "a", followed(g.SplitOp(items=LIST, on_empty="stop"), "a b branch")),  # type: ignore[arg-type]
    "a list that is none": ("expression", "a", followed(g.SplitOp(items={"source": "x"}), "a b branch")),
    # -- edges
    "a guard that was changed": (
        "expression",
        "a",
        Draft(nodes=[node("a"), node("b")], edges=[way("a b", when=CHANGED)]),
    ),
    "an assignment that was changed": (
        "expression",
        "a",
        Draft(nodes=[node("a"), node("b")], edges=[way("a b", assign={"x": CHANGED})]),
    ),
    "a fraction of a priority": (
        "edge_priority",
        "a",
        Draft(nodes=[node("a"), node("b")], edges=[way("a b", priority=0.5)]),
    ),
    "the same edge twice": ("duplicate_edge", "a", Draft(nodes=[node("a"), node("b")], edges=ways("a b", "a b"))),
    "a condition on the branch of a list": (
        "branch_condition",
        "a",
        Draft(nodes=[node("a", g.SplitOp(items=LIST)), node("b")], edges=[way("a b branch", when=QUESTION)]),
    ),
    "a branch that assigns": (
        "branch_condition",
        "a",
        Draft(nodes=[node("a", g.SplitOp()), node("b")], edges=[way("a b branch", assign={"x": QUESTION})]),
    ),
    "a task that answers": ("outcome", "a", followed(g.TaskOp(work=work()), "a b true")),
    "a condition that is confirmed": ("outcome", "a", followed(g.ConditionOp(expression=QUESTION), "a b confirmed")),
    "a person who is ok": ("outcome", "a", followed(g.HumanOp(), "a b ok")),
    "a timer that runs out of time": ("outcome", "a", followed(g.WaitTimerOp(duration_ms=1), "a b timeout")),
    "a timeout that was never set": ("outcome", "a", followed(g.HumanOp(), "a b timeout")),
    "a fork that is ok": ("outcome", "a", forking("a c ok")),
    "a join that is confirmed": ("outcome", "j", forked(node("d"), edges=["j d confirmed"])),
    "an answer that leads nowhere": (
        "no_way",
        "a",
        followed(g.HumanOp(outcomes=("approved", "rejected", "returned")), "a b approved"),
    ),
    "an answer that nobody can give": (
        "outcome",
        "a",
        followed(g.HumanOp(outcomes=("yes",)), "a b yes", "a b confirmed"),
    ),
    "no answer at all": ("outcomes", "a", alone(g.HumanOp(outcomes=()))),
    "a fraction in a form": ("form", "a", alone(g.HumanOp(form={"fields": [{"max": 1.5}]}))),
    "an answer twice": ("outcomes", "a", followed(g.HumanOp(outcomes=("yes", "yes")), "a b yes")),
    "an answer without a name": ("outcomes", "a", followed(g.HumanOp(outcomes=("yes", " ")), "a b *")),
    "an answer of the engine's": ("outcomes", "a", followed(g.HumanOp(outcomes=("yes", "timeout")), "a b *")),
    "a chain and people": ("asks", "a", alone(g.HumanOp(chain="spend", asks=(ANN,)))),
    "a role and people": ("asks", "a", alone(g.HumanOp(role="boss", asks=(ANN,)))),
    "the same person twice": ("asks", "a", alone(g.HumanOp(asks=(ANN, ANN)))),
    "a user without a name": ("asks", "a", alone(g.HumanOp(asks=(Ask(by="user"),)))),
    "a chain among others": ("asks", "a", alone(g.HumanOp(asks=(Ask(by="chain", of="spend"),)))),
    "a rule without an expression": ("asks", "a", alone(g.HumanOp(asks=(Ask(by="rule", of="x"),)))),
    "a rule for people that cannot be read": (
        "expression",
        "a",
        alone(g.HumanOp(asks=(Ask(by="rule", of="x", rule=CHANGED),))),
    ),
    "a person of no weight": ("asks", "a", alone(g.HumanOp(asks=(Ask(by="user", of="ann", weight=0),)))),
    "a crowd": ("asks", "a", alone(g.HumanOp(asks=tuple(Ask(by="user", of=f"u{n}") for n in range(101))))),
    "more than are asked": ("agree", "a", alone(g.HumanOp(asks=(ANN,), agree="n", least=2))),
    "more weight than there is": ("agree", "a", alone(g.HumanOp(asks=(ANN,), agree="weight", least=2))),
    "nobody who agrees": ("agree", "a", alone(g.HumanOp(agree="all"))),
    "a number that means nothing": ("agree", "a", alone(g.HumanOp(asks=(ANN,), least=2))),
    "a word for no agreement": ("agree", "a", alone(g.HumanOp(asks=(ANN,), agree="most"))),  # type: ignore[arg-type]
    "a chain that is overruled": ("agree", "a", alone(g.HumanOp(chain="spend", agree="any"))),
    "an approval that is none": ("outcomes", "a", alone(g.HumanOp(approves="yes"))),
    "an approval that rejects": ("outcomes", "a", alone(g.HumanOp(approves="rejected"))),
    "distinct from itself": ("distinct_from", "a", followed(g.HumanOp(distinct_from=("a",)), "a b confirmed")),
    "distinct from a task": ("distinct_from", "a", followed(g.HumanOp(distinct_from=("b",)), "a b confirmed")),
    "a capability of a branch": (
        "branch_condition",
        "a",
        Draft(nodes=[node("a", g.SplitOp()), node("b")], edges=[way("a b branch", capability="c")]),
    ),
    "an empty capability": ("capability", "a", alone(capability=" ")),
    "forks in forks in forks": ("nested", f"f{flow.DEEPEST_FORKS}", deep(flow.DEEPEST_FORKS + 3)),
    "a way on from the end": ("outcome", "a", followed(g.EndOp(), "a b *")),
    # -- forks and joins
    "no branches": ("no_branches", "a", alone(g.SplitOp())),
    "two branches over a list": (
        "many_branches",
        "a",
        Draft(nodes=[node("a", each()), node("b"), node("c")], edges=ways("a b branch", "a c branch")),
    ),
    "a join of a task": (
        "join_without_split",
        "b",
        Draft(nodes=[node("a"), node("b", g.JoinOp(split="a"))], edges=ways("a b")),
    ),
    "a join of nothing": ("join_without_split", "a", alone(g.JoinOp(split="gone"))),
    "two joins": (
        "two_joins",
        "a",
        Draft(
            nodes=[node("a", g.SplitOp()), node("b"), *(node(name, g.JoinOp(split="a")) for name in "jk")],
            edges=ways("a b branch", "b j", "b k error"),
        ),
    ),
    "an unknown strategy": ("join_strategy", "j", forked(join=g.JoinOp(split="a", strategy="most"))),  # type: ignore[arg-type]
    "an unknown fate": ("join_losers", "j", forked(join=g.JoinOp(split="a", losers="forget"))),  # type: ignore[arg-type]
    "more branches than there are": ("join_count", "j", forked(join=g.JoinOp(split="a", strategy="count", count=3))),
    "a join of no branches": ("join_count", "j", forked(join=g.JoinOp(split="a", strategy="count"))),
    "a join that is the entry": (
        "join_scope",
        "j",
        msgspec.structs.replace(forked(edges=["j a"]), entry="j", kind="process"),
    ),
    "a way round the fork": (
        "join_scope",
        "j",
        Draft(
            nodes=[node("a"), node("f", g.SplitOp()), node("b"), node("j", g.JoinOp(split="f"))],
            edges=ways("a f", "a j error", "f b branch", "b j"),
        ),
    ),
    "an inner branch at the outer join": (
        "join_scope",
        "j",
        Draft(
            nodes=[node("a", g.SplitOp()), node("in", g.SplitOp()), node("b"), node("j", g.JoinOp(split="a"))],
            edges=ways("a in branch", "in b branch", "b j"),
        ),
    ),
    "a branch that leaves its fork": ("mixed_scope", "d", forked(node("d"), edges=["j d", "b d error"])),
    "a way into a branch": (
        "mixed_scope",
        "b",
        Draft(
            nodes=[node("a"), node("f", g.SplitOp()), node("b")],
            edges=ways("a f", "a b error", "f b branch"),
        ),
    ),
    "a branch that goes back before its fork": (
        "mixed_scope",
        "a",
        Draft(
            nodes=[node("a"), node("f", g.SplitOp()), node("b")],
            edges=[*ways("a f", "f b branch"), way("b a error", rework=True)],
        ),
    ),
    # -- ways
    "no way to it": ("unreachable", "b", Draft(nodes=[node("a"), node("b")])),
    "a circle": ("cycle", "a", Draft(nodes=[node("a"), node("b")], edges=ways("a b", "b a"))),
    "a step to itself": ("cycle", "a", Draft(nodes=[node("a")], edges=ways("a a error"))),
}


@pytest.mark.row("F-018", "F-019", "F-020", "F-022", "E-177", "E-178", "E-183")
@pytest.mark.parametrize("case", BROKEN)
def test_each_rule_names_the_place_and_the_remedy(case: str) -> None:
    """A broken rule is one finding, with the code of the rule, the place, and a sentence with the remedy."""
    code, position, draft = BROKEN[case]
    found = findings(draft)
    assert [(each.code, each.position) for each in found] == [(code, position)]
    assert "; " in found[0].message
    assert found[0].message == found[0].message.strip().rstrip(".")


JUDGES = [
    checks,
    document_checks,
    flow,
    values,
    calendars,
    forms,
    times,
    *(inspect.getmodule(kind) for kind in get_args(Op)),
]
"""Modules that have rules."""


def stated_codes(module: ModuleType | None) -> set[str]:
    """The codes that a module can give, read from its source."""
    places = {"Diagnostic": 0, **{f"{sort}_findings": 1 for sort in ("name", "word", "time", "number", "plain")}}
    assert module is not None
    calls = [each for each in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(each, ast.Call)]
    given = [
        call.args[places[call.func.id]] for call in calls if isinstance(call.func, ast.Name) and call.func.id in places
    ]
    return {str(argument.value) for argument in given if isinstance(argument, ast.Constant)}


def test_each_rule_has_a_case() -> None:
    """No rule exists without a draft above that breaks it."""
    stated = set(checks.POLICY_WORDS).union(document_checks.WORDS, *map(stated_codes, JUDGES))
    assert stated == {code for code, *_ in (*BROKEN.values(), *BROKEN_DOCUMENTS.values())}


@pytest.mark.parametrize(
    ("struct", "field", "words"),
    [
        (g.RetryRule, "backoff", BACKOFFS),
        (g.JoinOp, "strategy", STRATEGIES),
        (g.EndOp, "status", END_STATUSES),
        *((Policies, field, words) for field, words in checks.POLICY_WORDS.items()),
        *((g.DocumentSpec, field, words) for field, words in document_checks.WORDS.items()),
    ],
)
def test_the_words_are_those_of_the_graph(struct: type, field: str, words: tuple[str, ...]) -> None:
    """What the checks allow is what the graph's types allow."""
    assert words == get_args(get_type_hints(struct)[field])


def test_all_word_fields_are_known() -> None:
    """No field with fixed words is left unchecked."""
    structs = [g.RetryRule, g.HandlerCall, Node, Edge, Policies, g.DocumentRule, g.DocumentSpec, *get_args(Op)]
    with_words = {
        (struct, name)
        for struct in structs
        for name, hint in get_type_hints(struct).items()
        if getattr(hint, "__origin__", None) is Literal
    }
    policies = {(Policies, field) for field in checks.POLICY_WORDS}
    documents = {(g.DocumentSpec, field) for field in document_checks.WORDS}
    others = {
        (g.JoinOp, "strategy"),
        (g.JoinOp, "losers"),
        (g.SplitOp, "on_empty"),
        (g.EndOp, "status"),
        (g.ProxyOp, "side"),
        (g.DocumentRule, "effect"),
    }
    assert with_words == {(g.RetryRule, "backoff"), *others, *policies, *documents}


@pytest.mark.row("E-187")
def test_all_findings_come_at_once() -> None:
    """Findings of all sorts come together, also where names are broken."""
    draft = Draft(
        nodes=[
            node("a", g.TaskOp(work=work("", max_calls=0))),
            node("b", g.HumanOp(), priority=500),
            node("twin"),
            node("twin"),
            node("x"),
            node("y"),
            node("f", g.SplitOp()),
        ],
        edges=ways("a b", "b twin ok", "twin gone", "b x confirmed", "x y", "y x", "b f rejected"),
        version="",
        policies=Policies(max_visits=0),
    )
    assert codes(draft) == {
        "no_version",
        "max_visits",
        "no_handler",
        "attempts",
        "priority",
        "duplicate_step",
        "outcome",
        "unknown_step",
        "cycle",
        "no_branches",
    }


def test_a_wrong_name_does_not_hide_behind_its_consequences() -> None:
    """Behind an edge to nowhere, steps are not reported as out of reach; the wrong name is."""
    draft = Draft(nodes=[node("a"), node("b"), node("c")], edges=ways("a bb", "b c"))
    assert codes(draft) == {"unknown_step"}


@pytest.mark.row("E-187")
def test_findings_have_an_order_of_their_own() -> None:
    """The order of nodes and edges does not change the findings."""
    draft = forked(
        node("d", priority=-1), node("e", g.JoinOp(split="a")), edges=["j d", "b d error", "b e", "x y", "d a"]
    )
    expected = findings(draft)
    assert len(expected) > 4
    for seed in range(20):
        nodes, edges = list(draft.nodes), list(draft.edges)
        Random(seed).shuffle(nodes)
        Random(seed + 1).shuffle(edges)
        assert findings(msgspec.structs.replace(draft, nodes=nodes, edges=edges)) == expected


def test_each_circle_is_told_once_and_briefly() -> None:
    """Every knot of steps is one finding with a shortest circle; a long circle is not spelt out."""
    nodes = [node(name) for name in "abcde"]
    found = findings(Draft(nodes=nodes, edges=ways("a b", "b a", "b c", "c d", "d e", "e d", "e c")))
    assert [each.message.split(" goes")[0] for each in found] == ["'a' → 'b' → 'a'", "'c' → 'd' → 'e' → 'c'"]
    ring = [f"{place:03}" for place in range(100)]
    edges = [way(f"{each} {ring[(place + 1) % 100]}") for place, each in enumerate(ring)]
    [long] = findings(Draft(nodes=[node(each) for each in ring], edges=edges, entry="000"))
    assert "'004' → '005' → (94 more) → '000'" in long.message


def test_a_long_name_is_not_repeated_in_full() -> None:
    """A name that is too long does not make the message too long."""
    [found] = findings(Draft(nodes=[node("a")], name="n" * 100_000))
    assert len(found.message) < 150


SOUND: dict[str, Draft] = {
    "one task": alone(),
    "a name with the reserved prefix inside": Draft(nodes=[node("xcond#")], entry="xcond#"),
    "a name with signs": Draft(nodes=[node('end "]; ünï 日本 😀 👩\u200d🚀')], entry='end "]; ünï 日本 😀 👩\u200d🚀'),
    "a join as the builder names it": Draft(
        nodes=[node("p", g.SplitOp()), node("x"), node("p#join", g.JoinOp(split="p"))],
        edges=ways("p x branch", "x p#join"),
        entry="p",
    ),
    "the longest name": Draft(nodes=[node("n" * LONGEST_NAME)], entry="n" * LONGEST_NAME),
    "a compensation that is never called": alone(compensation=work(max_calls=0)),
    "once to undo, never called": alone(compensation=work(once=True, max_calls=0)),
    "a call inside the commit with a limit": alone(
        g.TaskOp(work=g.HandlerCall(handler="h", transactional=True, timeout_ms=5))
    ),
    "once": alone(g.TaskOp(work=work(once=True, max_calls=1))),
    "no time to wait": alone(g.WaitTimerOp(duration_ms=0)),
    "a branch straight to the join": Draft(
        nodes=[node("a", g.SplitOp()), node("j", g.JoinOp(split="a"))], edges=ways("a j branch")
    ),
    "a fork without a join": Draft(nodes=[node("a", g.SplitOp()), node("b")], edges=ways("a b branch")),
    "branches that end on their own": forked(node("d"), node("e", g.EndOp()), edges=["b d error", "c e error", "j e"]),
    "an end for everybody": forked(
        node("end", g.EndOp(status="failed")), edges=["j end", "b end error", "c end error"]
    ),
    "two branches into one step": Draft(
        nodes=[node("a", g.SplitOp()), node("b"), node("c"), node("d"), node("j", g.JoinOp(split="a"))],
        edges=ways("a b branch", "a c branch", "b d", "c d", "d j"),
    ),
    "a number of items": Draft(
        nodes=[node("a", each(limit=1)), node("b"), node("j", g.JoinOp(split="a", strategy="count", count=7))],
        edges=ways("a b branch", "b j"),
    ),
    "lists in lists": listed(each("x"), each("y")),
    "lists in a row": Draft(
        nodes=[
            node("a", each()),
            node("b"),
            node("j", g.JoinOp(split="a")),
            node("k", each()),
            node("c"),
        ],
        edges=ways("a b branch", "b j", "j k", "k c branch"),
    ),
    "a loop of a process": Draft(nodes=[node("a"), node("b")], edges=ways("a b", "b a"), kind="process"),
    "a loop of rules": Draft(nodes=[node("a")], edges=ways("a a error"), kind="rules"),
    "rework in a saga": Draft(nodes=[node("a"), node("b")], edges=[way("a b"), way("b a error", rework=True)]),
    "reminders and rungs within the time": alone(
        timed(
            reminders_ms=(5, 14),
            escalation=(g.Rung(after_ms=8, role="r", timeout_ms=10), g.Rung(after_ms=17, user="u")),
        ),
        timeout_ms=9,
    ),
    "any outcome": followed(g.HumanOp(), "a b *"),
    "all of a person": Draft(
        nodes=[node("a", g.HumanOp(), timeout_ms=5), *(node(name) for name in "bcde")],
        edges=ways("a b confirmed", "a c rejected", "a d timeout", "a e error"),
    ),
    "a list that cannot be told": Draft(
        nodes=[node("a", each()), node("b"), node("c")], edges=ways("a b branch", "a c error")
    ),
    "metadata": alone(metadata={"x": [1, None, True, "t", {"y": -(2**53) + 1}]}),
    "guards and assignments": Draft(
        nodes=[node("a"), node("b"), node("c")],
        edges=[way("a b", when=QUESTION, assign={"x": LIST}, priority=-5), way("a c")],
    ),
}


@pytest.mark.parametrize("case", SOUND)
def test_what_is_sound_passes(case: str) -> None:
    """What looks unusual and is sound is not refused."""
    assert findings(SOUND[case]) == []


# -- size


def chain(length: int) -> Draft:
    """Steps in a row."""
    edges = [way(f"s{place} s{place + 1}") for place in range(length - 1)]
    return Draft(nodes=[node(f"s{place}") for place in range(length)], edges=edges, entry="s0")


def wide(width: int) -> Draft:
    """A fork with many branches."""
    steps = [f"s{place}" for place in range(width)]
    edges = [*ways(*(f"a {step} branch" for step in steps)), *ways(*(f"{step} j" for step in steps))]
    return Draft(nodes=[node("a", g.SplitOp()), *map(node, steps), node("j", g.JoinOp(split="a"))], edges=edges)


def ring(length: int) -> Draft:
    """Steps in a circle, each with a way to itself and one back."""
    steps = chain(length)
    back = [way(f"s{place} s{place - 1} error") for place in range(1, length)]
    return msgspec.structs.replace(steps, edges=[*steps.edges, *back, way(f"s{length - 1} s0")])


def scattered(length: int) -> Draft:
    """Steps that nothing connects."""
    return msgspec.structs.replace(chain(length), edges=[])


@pytest.mark.parametrize("make", [chain, wide, deep, ring, scattered])
def test_size_costs_no_more_than_its_share(make: Callable[[int], Draft]) -> None:
    """A thousand nodes are judged well within a second, and five thousand overflow nothing, sound or not."""
    small, large = make(1000 if make is not deep else 500), make(5000)
    begun = time.perf_counter()
    findings(small)
    took = time.perf_counter() - begun
    assert took < 1
    findings(large)


# -- any draft

NAMES = ("a", "b", "c", "d", "e", "f")
OPS = st.one_of(
    st.just(g.TaskOp(work=work())),
    st.just(g.SplitOp()),
    st.just(g.SplitOp(items=LIST, item="x")),
    st.builds(lambda split: g.JoinOp(split=split), st.sampled_from(NAMES)),
    st.just(g.ConditionOp(expression=QUESTION)),
    st.just(g.HumanOp()),
    st.just(g.EndOp()),
)
OUTCOME_WORDS = (g.OK, g.ERROR, g.TRUE, g.BRANCH, g.BRANCH, g.CONFIRMED, "*")
EDGES = st.builds(
    lambda source, target, on, rework: Edge(source=source, target=target, on=on, rework=rework),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.sampled_from(OUTCOME_WORDS),
    st.booleans(),
)


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """Small graphs without any order."""
    nodes = [node(name, draw(OPS)) for name in NAMES[: draw(st.integers(1, 6))]]
    edges = draw(st.lists(EDGES, max_size=12))
    return Draft(nodes=nodes, edges=edges, kind=draw(st.sampled_from(("saga", "process"))))


def breaks_the_order(draft: Draft) -> bool:
    """Whether a token could come to a join that is not its own split's, tried by moving tokens with all their splits."""
    ops = {each.id: each.op for each in draft.nodes}
    pending: list[tuple[str, tuple[str, ...]]] = [(draft.entry, ())]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while pending:
        place = pending.pop()
        name, splits = place
        op = ops[name]
        if place in seen or len(splits) > len(ops):
            continue
        seen.add(place)
        if isinstance(op, g.JoinOp):
            if not splits or splits[-1] != op.split:
                return True
            splits = splits[:-1]
        for edge in draft.edges:
            if edge.source == name and edge.target in ops:
                is_branch = isinstance(op, g.SplitOp) and edge.on == g.BRANCH
                pending.append((edge.target, (*splits, name) if is_branch else splits))
    return False


@settings(untimed, max_examples=400)
@given(drafts())
def test_no_token_of_a_sound_graph_meets_a_foreign_join(draft: Draft) -> None:
    """Any draft is judged without an accident; in one that passes, only branches of its split can come to a join."""
    found = codes(draft)
    if not found & {"join_scope", "mixed_scope", "join_without_split", "unknown_step"}:
        assert not breaks_the_order(draft)
    if "join_scope" in found:
        assert breaks_the_order(draft)


@untimed
@given(st.text(max_size=300), st.text(max_size=10), st.integers() | st.floats() | st.none() | st.text(max_size=3))
def test_no_value_upsets_the_checks(name: str, text: str, value: object) -> None:
    """Whatever stands in a field, the answer is a list of findings."""
    fields = {"region": text, "priority": value, "timeout_ms": value, "metadata": {text: value, "more": [value]}}
    retry = {"max_calls": value, "delay_ms": value, "jitter_percent": value}
    nodes = [
        node(name, g.TaskOp(work=work(text, **retry)), **fields),  # type: ignore[arg-type]
        node("w", g.WaitTimerOp(duration_ms=value)),  # type: ignore[arg-type]
        node("c", g.WaitTimerOp(cron=text, time_zone=text)),
        node("v", g.WaitTimerOp(cron=value, time_zone=value)),  # type: ignore[arg-type]
        node("e", g.WaitEventsOp(events=(g.Awaited(event=text, name=text),), need=value)),  # type: ignore[arg-type]
        node("s", g.WaitEventOp(signal=value)),  # type: ignore[arg-type]
    ]
    policies = Policies(deadline_ms=value, max_visits=value)  # type: ignore[arg-type]
    draft = Draft(nodes=nodes, edges=[Edge(source=name, target="w", on=text)], entry=name, policies=policies)
    assert codes(draft) & {"unreachable", "duplicate_step"}
