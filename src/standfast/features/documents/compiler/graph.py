"""From a compiled workflow to the graph that the machine runs: every node and edge of the artifact, in the machine's own kinds.

The edges of an artifact as the machine has them.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator

import msgspec

from standfast.errors import DefinitionError, Diagnostic
from standfast.expressions import ExpressionOptions, parse
from standfast.features.documents.body import format as b
from standfast.features.documents.body.node_checks import SERVICE, other_type
from standfast.features.documents.body.outcomes import refusal_of, spelt_out
from standfast.features.documents.compiler.artifact import Effective, check_whole
from standfast.features.documents.compiler.document_spec import document_spec, verb
from standfast.features.documents.contract.expressions import Stored
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.ids import ENVELOPE, START
from standfast.features.documents.contract.parts import ANY, OK, SYSTEM_TYPES, EnvelopeEdge, EnvelopeNode
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.graph.field_visibility import exposing
from standfast.graph.nodes.action import ELSEWHERE
from standfast.graph.nodes.rule import DocumentRule
from standfast.graph.nodes.task import WEBHOOK
from standfast.graph.source_files.values import milliseconds
from standfast.graph.values.approver_rules import ROLE, RULE, USER, Ask
from standfast.graph.values.calendars import UTC_ZONE
from standfast.kernel.codec.type_cache import settled


def machine_edges(effective: Effective) -> dict[str, str]:
    """For each edge of the graph, by its id, the edge of the artifact that it stands for: what histories name, and what authors know."""
    return {machine.id: edge.id for edge, machine in _pairs(effective)}


def edges_of(effective: Effective) -> Iterator[g.Edge]:
    """The edges of the graph."""
    return (machine for _, machine in _pairs(effective))


def _pairs(effective: Effective) -> Iterator[tuple[EnvelopeEdge, g.Edge]]:
    for name, leaving in effective.adjacency.items():
        node = effective.nodes_by_id[name]
        said = {effective.edges_by_id[each].on for each in leaving}
        for place, edge_id in enumerate(leaving):
            edge = effective.edges_by_id[edge_id]
            if not _is_refusal(effective, node, edge):
                for word in _words(node, edge, said):
                    yield edge, _edge(node, msgspec.structs.replace(edge, on=word), place)


def _words(node: EnvelopeNode, edge: EnvelopeEdge, said: Collection[str]) -> Collection[str]:
    """What an edge is for."""
    if edge.on != ANY or node.type in SYSTEM_TYPES or "split" in node.config:
        return (edge.on,)
    words = spelt_out(patch_node(node), said)
    return (edge.on,) if words is None else words


def _is_refusal(effective: Effective, node: EnvelopeNode, edge: EnvelopeEdge) -> bool:
    """Whether an edge is a refusal that leaves its slot."""
    is_out = effective.nodes_by_id[edge.target].type == "slot_proxy" and edge.target.endswith(":out")
    return is_out and node.type in {"approval", "rule"} and edge.on == refusal_of(patch_node(node))


def _edge(node: EnvelopeNode, edge: EnvelopeEdge, place: int) -> g.Edge:
    on, assign = edge.on, {}
    if node.type == "wait_event" and on == "event":
        on = g.OK
        into = node.config.get("into")
        assign = {str(into): brought("event.payload")} if into else {}
    if node.type == "condition" and "expression" not in node.config and on == OK:
        on = g.TRUE
    return g.Edge(
        source=edge.source,
        target=edge.target,
        on=on,
        when=edge.when,
        priority=place,
        rework=edge.rework,
        assign=assign,
    )


def patch_node(node: EnvelopeNode) -> b.PatchNode:
    """What the author wrote of a node."""
    found: b.PatchNode = msgspec.convert({**node.config, "id": node.id, "type": node.type}, settled(b.PatchNode))
    return found


@functools.cache
def brought(text: str) -> Stored:
    """A value that comes with an answer or an event."""
    return parse(
        text, spelling="mapping", options=ExpressionOptions(namespaces=frozenset({text.partition(".")[0]}))
    ).to_data()


def graph_of(effective: Effective, *, version: str = "1") -> g.Graph:
    """The graph of a compiled workflow, named after the type of its documents; `version` is that of the published workflow."""
    check_whole(effective)
    return _graph(effective, version)


def graph_findings(effective: Effective) -> tuple[Diagnostic, ...]:
    """What the compiler of graphs has against a workflow, sealed or not, and what its calls must not hand on; nothing if all is well."""
    try:
        return tuple(exposing(_graph(effective, "1")))
    except DefinitionError as error:
        return error.diagnostics


def _graph(effective: Effective, version: str) -> g.Graph:
    contract = effective.contract
    return compile_graph(
        kind="envelope",
        name=effective.entity_type,
        version=version,
        entry=START,
        nodes=[machine_node(contract, each) for each in effective.nodes_by_id.values()],
        edges=list(edges_of(effective)),
        policies=_policies(contract),
        document=document_spec(effective),
    )


def _policies(contract: Contract) -> g.Policies:
    limits = contract.limits
    return g.Policies(
        on_failure="pause",
        on_cancel="none",
        on_no_edge="pause",
        max_visits=limits.visits,
        max_tokens=limits.tokens,
        max_bytes=limits.context,
    )


# -- nodes


def machine_node(contract: Contract, node: EnvelopeNode) -> g.Node:
    """A node of the artifact as the machine has it."""
    region = "" if node.slot == ENVELOPE else node.slot
    told = {name: text for name in ("title", "description") if (text := node.config.get(name))}
    if node.type in SYSTEM_TYPES or "split" in node.config:
        return g.Node(
            id=node.id,
            op=_system(contract, node),
            region=region,
            timeout_ms=milliseconds(_text(node, "timeout")),
            run_as=_run_as(_text(node, "run_as") or ""),
            metadata=told,
        )
    written = patch_node(node)
    return g.Node(
        id=node.id,
        op=_op(contract, node, written),
        region=region,
        timeout_ms=milliseconds(written.timeout)
        if isinstance(written, b.ApprovalNode | b.WaitEventNode | b.CallNode)
        else None,
        capability=(written.capability or "") if isinstance(written, b.ApprovalNode) else "",
        run_as=_run_as(written.run_as) if isinstance(written, b.ActionNode) else "",
        compensation=_undo(contract, written) if isinstance(written, b.ActionNode) else None,
        metadata=told,
    )


def _system(contract: Contract, node: EnvelopeNode) -> g.Op:
    match node.type:
        case "start":
            return g.StartOp()
        case "end":
            return g.RestOp()
        case "state":
            status = str(node.config["status"])
            intents = tuple(each.name for each in contract.lifecycle.transitions if status in each.sources)
            return g.StateOp(status=status, intents=intents)
        case "lifecycle_gate":
            return g.GateOp(transition=str(node.config["transition"]))
        case "policy_gate":
            action = str(node.config["action"])
            of = other_type(contract, action, is_elsewhere=bool(node.config.get("elsewhere")))
            return g.PolicyGateOp(action=_short(contract, action, of), of=of)
        case "slot_proxy":
            return g.ProxyOp(slot=node.slot, side="in" if node.config["side"] == "in" else "out")
        case _:
            return _join(node)


def _join(node: EnvelopeNode) -> g.JoinOp:
    losers = str(node.config.get("losers", "undo"))
    return g.JoinOp(
        split=str(node.config["split"]),
        strategy="any" if node.config.get("mode") == "any" else "all",
        losers="finish" if losers == "finish" else "stop" if losers == "stop" else "undo",
        accept=node.formulas.get("accept"),
        abort=node.formulas.get("abort"),
    )


def _op(contract: Contract, node: EnvelopeNode, written: b.PatchNode) -> g.Op:
    match written:
        case b.ActionNode():
            return _action(contract, node, written)
        case b.ApprovalNode():
            return _approval(contract, node, written)
        case b.ConditionNode():
            return g.ConditionOp(expression=node.formulas.get("expression") or _always())
        case b.ParallelSplitNode():
            return _split(node, written)
        case b.ScriptNode():
            return g.ScriptOp(formula=node.formulas["formula"], into=written.into or "")
        case b.RuleNode():
            return g.RuleOp(rules=tuple(_rule(node, each) for each in written.rules))
        case b.WaitTimerNode() | b.WaitEventNode():
            return _wait(node, written)
        case _:
            return _outward(node, written)


def _split(node: EnvelopeNode, written: b.ParallelSplitNode) -> g.SplitOp:
    if not isinstance(written, b.ForEachNode):
        return g.SplitOp()
    return g.SplitOp(
        items=node.formulas["items"],
        item=written.item,
        limit=written.limit,
        most=written.most,
        on_empty="skip" if written.on_empty == "skip" else "fail",
    )


def _action(contract: Contract, node: EnvelopeNode, written: b.ActionNode) -> g.ActionOp:
    of = other_type(contract, written.action, is_elsewhere=written.target is not None)
    return g.ActionOp(
        action=_short(contract, written.action, of),
        payload=_under(node, "payload."),
        work=None if of else _handler(contract, written.action, written.retry),
        of=of,
        target=node.formulas.get("target"),
        undo="" if written.undo is None else _short(contract, written.undo, of),
    )


def _short(contract: Contract, action: str, of: str) -> str:
    """The name of an action without its type, of this contract or another one."""
    return action.removeprefix(f"{of}.") if of else verb(contract, action)


def _undo(contract: Contract, written: b.ActionNode) -> g.HandlerCall | None:
    """What takes an action back: for another document the engine does that itself."""
    if written.undo is None:
        return None
    of = other_type(contract, written.action, is_elsewhere=written.target is not None)
    return ELSEWHERE if of else _handler(contract, written.undo, written.retry)


def _wait(node: EnvelopeNode, written: b.WaitTimerNode | b.WaitEventNode) -> g.Op:
    if isinstance(written, b.WaitEventNode):
        awaited = g.Awaited(event=written.event, key=node.formulas.get("key"), match=node.formulas.get("match"))
        return g.WaitEventsOp(events=(awaited,))
    return g.WaitTimerOp(
        duration_ms=milliseconds(written.duration),
        until=node.formulas.get("until"),
        cron=written.cron or "",
        time_zone=written.time_zone or UTC_ZONE,
        calendar=written.calendar or "",
    )


def _outward(node: EnvelopeNode, written: b.PatchNode) -> g.Op:
    """Nodes that have to do with the world outside of the database."""
    match written:
        case b.NotificationNode():
            templates = {
                name: stored
                for name, stored in node.formulas.items()
                if name.split(".")[0] in {"subject", "body", "to"}
            }
            return g.NotificationOp(
                to=tuple(written.to),
                subject=written.subject,
                body=written.body,
                templates=templates,
                channels=tuple(written.channels or ()) or ("in_app",),
                wait=written.waits,
            )
        case b.WebhookNode():
            work = g.HandlerCall(
                handler=WEBHOOK,
                retry=g.RetryRule(
                    max_calls=1 if written.once else written.attempts,
                    delay_ms=30_000,
                    backoff="exponential",
                    cap_ms=3_600_000,
                    jitter_percent=20,
                ),
                once=written.once,
                timeout_ms=milliseconds(written.timeout),
            )
            secret = {} if written.secret is None else {"secret": _constant(written.secret)}
            return g.TaskOp(
                work=work,
                input={"url": node.formulas["url"], **secret, **_under(node, "payload.", keep=True)},
                output=_kept(written.into) if written.waits else {},
                detached=not written.waits,
            )
        case b.CallNode():
            given, into = _under(node, "input."), written.into or ""
            version, is_detached = written.version or "", written.detached
            return g.CallOp(definition=written.workflow, version=version, input=given, into=into, detached=is_detached)
        case _:
            assert isinstance(written, b.TaskNode)
            retry = written.retry or (None if written.attempts is None else b.BodyRetry(attempts=written.attempts))
            work = g.HandlerCall(
                handler=written.handler,
                retry=_retry(retry),
                timeout_ms=milliseconds(written.timeout),
                capability=written.capability or "",
            )
            return g.TaskOp(work=work, input=_under(node, "input."), output=_kept(written.into))


def _approval(contract: Contract, node: EnvelopeNode, written: b.ApprovalNode) -> g.HumanOp:
    allowed = contract.self_approval and written.self_approval is not False  # A body can be stricter, never looser.
    return g.HumanOp(
        outcomes=("approved", "rejected", g.ABSTAINED),
        approves="approved",
        form=written.form,
        subject=written.title,
        template=node.formulas.get("title"),
        shows=_under(node, "shows."),
        asks=tuple(_ask(node, place, each) for place, each in enumerate(written.approvers or ())),
        chain=written.chain or "",
        agree=written.agree,
        least=written.least,
        requires_reason=written.requires_reason,
        self_approval=allowed,
        distinct_from=tuple(written.distinct_from or ()),
        distinct_approvers=written.distinct_approvers,
        delegable=written.delegable,
        times=_times(written),
        channels=tuple(written.channels or ()),
        pins=True,
        covers=tuple(written.covers or ()),
    )


def _ask(node: EnvelopeNode, place: int, approver: b.Approver) -> Ask:
    rule = node.formulas.get(f"approvers.{place}")
    by, of = next(
        (by, of)
        for by, of in (
            (ROLE, approver.role),
            (USER, approver.user),
            (RULE, approver.expression),
            (approver.resolver or "", approver.of or ""),
        )
        if of is not None
    )
    return Ask(by=by, of=of, rule=rule, weight=approver.weight, pick=approver.pick)


def _times(written: b.ApprovalNode) -> g.TaskTimes | None:
    due = milliseconds(written.due)
    if due is None and not written.remind and written.calendar is None:
        return None
    escalation = () if written.escalate_to is None or due is None else (g.Rung(after_ms=due, role=written.escalate_to),)
    reminders = sorted(each for text in written.remind if (each := milliseconds(text)) is not None)
    return g.TaskTimes(
        due_ms=due, reminders_ms=tuple(reminders), escalation=escalation, calendar=written.calendar or ""
    )


def _rule(node: EnvelopeNode, rule: b.FlatRule) -> DocumentRule:
    return DocumentRule(
        name=rule.name,
        when=node.formulas.get(f"when.{rule.name}"),
        effect=rule.effect,
        field=rule.field or "",
        reason=rule.reason,
        outcome=rule.outcome or "",
    )


# -- values


def _handler(contract: Contract, action: str, retry: b.BodyRetry | None = None) -> g.HandlerCall | None:
    handler = next((each.handler for each in contract.actions if each.name == action), None)
    return None if handler is None else g.HandlerCall(handler=handler, transactional=True, retry=_retry(retry))


def _retry(retry: b.BodyRetry | None) -> g.RetryRule:
    """How a call is made again; a body that does not say leaves it to the settings of the engine."""
    if retry is None:
        return g.RetryRule(is_default=True)
    return g.RetryRule(
        max_calls=retry.attempts,
        delay_ms=milliseconds(retry.delay) or 0,
        backoff=retry.backoff,
        factor_percent=round(retry.factor * 100),
        cap_ms=milliseconds(retry.cap) or 0,
        jitter_percent=round(retry.jitter * 100),
    )


def _under(node: EnvelopeNode, prefix: str, *, keep: bool = False) -> dict[str, Stored]:
    found = {name: stored for name, stored in node.formulas.items() if name.startswith(prefix)}
    return found if keep else {name.removeprefix(prefix): stored for name, stored in found.items()}


def _kept(into: str | None) -> dict[str, Stored]:
    return {} if into is None else {into: brought("response")}


def _constant(text: str) -> Stored:
    return parse(
        msgspec.json.encode(text).decode(), spelling="mapping", options=ExpressionOptions(templates=False)
    ).to_data()


def _text(node: EnvelopeNode, name: str) -> str | None:
    value = node.config.get(name)
    return value if isinstance(value, str) else None


def _run_as(given: str) -> str:
    """Whoever asks is nobody in particular; a service account goes by its own id."""
    return "" if given == "actor" else given.removeprefix(SERVICE)


@functools.cache
def _always() -> Stored:
    """The condition that holds. It is parsed when it is needed: the parser takes longer to make than all else that is imported."""
    return parse("true").to_data()
