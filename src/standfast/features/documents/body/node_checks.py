"""What can be wrong with what a node of a patch says of itself, expressions apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from standfast.expressions.model.suggestions import suggestion
from standfast.features.documents.body import format as b
from standfast.features.documents.body.patches import PatchDraft, Report
from standfast.features.documents.contract.format import Contract
from standfast.graph.source_files.parsing import shown
from standfast.graph.source_files.values import REMEDIES, VERB
from standfast.graph.values.calendars import calendar_findings
from standfast.graph.values.forms import form_faults
from standfast.graph.values.value_checks import name_findings
from standfast.kernel.durations import duration_of, duration_text

APPROVER: Final = ("role", "user", "expression", "resolver")
TIMES: Final = ("duration", "until", "cron")
SERVICE: Final = "service_account:"
BUILT_IN: Final = ("create", "update")
"""What can be done to every document."""
Chains: TypeAlias = Collection[str] | None
"""The approval chains that an organisation has published; None if nobody knows them here."""
_VERB: Final = re.compile(VERB, re.ASCII)


def actions_of(contract: Contract) -> dict[str, bool]:
    """What can be done to documents of a type, by full name, and whether the workflow may do it."""
    built_in = {f"{contract.entity_type}.{verb}": False for verb in BUILT_IN}
    return built_in | {each.name: each.workflow_allowed for each in contract.actions}


def other_type(contract: Contract, action: str, *, is_elsewhere: bool) -> str:
    """The type of the other document that an action is done to; empty if it is done to the document itself."""
    of = action.partition(".")[0] if "." in action else contract.entity_type
    return of if is_elsewhere or of != contract.entity_type else ""


def check_nodes(draft: PatchDraft, contract: Contract, report: Report, *, chains: Chains = None) -> None:
    """Report all that is wrong with the nodes of a patch."""
    checks = _NodeChecks(draft, contract, report, chains)
    for name, node in draft.nodes.items():
        checks.look(name, node)


class _NodeChecks:
    def __init__(self, draft: PatchDraft, contract: Contract, report: Report, chains: Chains) -> None:
        self._chains = chains
        self._draft = draft
        self._contract = contract
        self._actions = actions_of(contract)
        self._report = report

    def look(self, name: str, node: b.PatchNode) -> None:
        match node:
            case b.ActionNode():
                self._action(name, node)
            case b.ApprovalNode():
                self._approval(name, node)
            case b.WaitTimerNode():
                self._timer(name, node)
            case b.RuleNode():
                self._rules(name, node)
            case b.WebhookNode():
                self._webhook(name, node)
            case b.TaskNode(attempts=int(), retry=b.BodyRetry()):
                message = f"{shown(name)} has both `attempts` and `retry`; write the attempts into `retry`"
                self._find("retry", message, name, node, "attempts")
            case _:
                pass

    def _webhook(self, name: str, node: b.WebhookNode) -> None:
        for field in () if node.waits else ("into", "timeout", "once"):
            if getattr(node, field):
                message = (
                    f"nobody waits for the request of {shown(name)}, so that `{field}` says nothing; drop it, or wait"
                )
                self._find("webhook", message, name, node, field)
        if node.secret is not None:
            for wrong in name_findings(name, "webhook", f"the secret of {shown(name)}", node.secret):
                self._find(wrong.code, wrong.message, name, node, "secret")

    def _action(self, name: str, node: b.ActionNode) -> None:
        if other_type(self._contract, node.action, is_elsewhere=node.target is not None):
            self._elsewhere(name, node)
        else:
            self._own(name, node)
        if node.run_as not in {"actor", "system"} and not node.run_as.removeprefix(SERVICE).strip():
            self._find("run_as", f"{shown(name)} names no account; write {SERVICE}<id>", name, node, "run_as")
        elif node.run_as not in {"actor", "system"} and not node.run_as.startswith(SERVICE):
            message = f"{shown(name)} runs as {shown(node.run_as)}; it can be actor, system, or {SERVICE}<id>"
            self._find("run_as", message, name, node, "run_as")

    def _elsewhere(self, name: str, node: b.ActionNode) -> None:
        """Another document: what can be done to it, its own contract says, when it is done."""
        of, _, verb = node.action.partition(".")
        if _VERB.fullmatch(node.action) is None:
            message = f"{shown(name)} does {shown(node.action)}, which is no action; {REMEDIES[VERB]}"
            self._find("unknown_action", message, name, node, "action")
        if node.target is None and verb != "create":
            known = sorted(self._actions)
            told = suggestion(node.action, known) or f"; its own contract has {', '.join(known)}"
            message = f"{shown(name)} does {shown(node.action)} to another document and does not say which; give `target`{told}"
            self._find("unknown_action", message, name, node, "action")
        if of == self._contract.entity_type and node.action not in self._actions:
            known = sorted(self._actions)
            told = suggestion(node.action, known) or f"; there are {', '.join(known)}"
            message = f"{shown(name)} does {shown(node.action)}, which its contract does not have{told}"
            self._find("unknown_action", message, name, node, "action")
        if node.retry is not None:
            message = (
                f"{shown(name)} has `retry`, and an action on another document has no handler to call again; drop it"
            )
            self._find("retry", message, name, node, "retry")
        if node.undo is not None and (node.undo.partition(".")[0] != of or _VERB.fullmatch(node.undo) is None):
            message = f"{shown(node.undo)} is not done to documents of the type {shown(of)}; take one of theirs, such as {of}.cancel"
            self._find("undo", message, name, node, "undo")

    def _own(self, name: str, node: b.ActionNode) -> None:
        for field, action in (("action", node.action), ("undo", node.undo)):
            if action is None:
                continue
            if action not in self._actions:
                known = sorted(self._actions)
                told = suggestion(action, known) or f"; there are {', '.join(known)}"
                self._find(
                    "unknown_action",
                    f"{shown(name)} does {shown(action)}, which its contract does not have{told}",
                    name,
                    node,
                    field,
                )
            elif not self._actions[action]:
                message = f"{shown(action)} is for people: its contract does not say `workflow_allowed`; take another, or allow it"
                self._find("action_not_allowed", message, name, node, field)
        for action, field in ((node.action, "action"), (node.undo or "", "undo")):
            if any(each.creates for each in self._contract.actions if each.name == action):
                message = f"{shown(action)} makes a document, and {shown(name)} has no `target`; give the id of the new one, or take another action"
                self._find("action_not_allowed", message, name, node, field)
        handlers = {each.name for each in self._contract.actions if each.handler is not None}
        if node.undo in self._actions and node.undo not in handlers:
            message = f"{shown(node.undo)} has no handler, so it cannot take back anything; give its action one"
            self._find("undo", message, name, node, "undo")
        if node.retry is not None and node.action in self._actions and not {node.action, node.undo} & handlers:
            message = f"{shown(name)} has `retry`, and {shown(node.action)} has no handler to call again; drop it"
            self._find("retry", message, name, node, "retry")

    def _approval(self, name: str, node: b.ApprovalNode) -> None:
        if node.approvers != [] and bool(node.approvers) is (
            node.chain is not None
        ):  # An empty list is found elsewhere.
            told = (
                "both `approvers` and `chain`; keep one"
                if node.approvers
                else "neither `approvers` nor `chain`; give one"
            )
            self._find("approvers", f"{shown(name)} has {told}", name, node, "chain" if node.approvers else "")
        if node.chain is not None and self._chains is not None and node.chain not in self._chains:
            known = sorted(self._chains)
            told = suggestion(node.chain, known) or f"; there are {', '.join(known) or 'none'}"
            message = (
                f"{shown(name)} asks by the chain {shown(node.chain)}, which is not published{told}; publish it first"
            )
            self._find("unknown_chain", message, name, node, "chain")
        for each in node.approvers or ():
            self._approver(name, each)
        self._agreement(name, node)
        if node.self_approval and not self._contract.self_approval:
            message = f"{shown(name)} lets whoever asks decide too, and the contract does not; drop `self_approval`"
            self._find("self_approval", message, name, node, "self_approval")
        self._covers(name, node)
        for other in node.distinct_from or ():
            if (
                not isinstance(self._draft.nodes.get(self._draft.full(other)), b.ApprovalNode | b.UnreadNode)
                or self._draft.full(other) == name
            ):
                message = f"{shown(name)} is to differ from {shown(other)}, which is no other approval of this patch; correct it"
                self._find("distinct_from", message, name, node, "distinct_from")
        self._times(name, node)
        if node.form is not None:
            for wrong in form_faults(name, node.form):
                self._report("form", wrong.message, node=name, part=node, field="form", path=wrong.path)

    def _covers(self, name: str, node: b.ApprovalNode) -> None:
        for field in node.covers or ():
            if field not in self._contract.fields:
                told = suggestion(field, self._contract.fields)
                message = f"{shown(name)} covers {shown(field)}, which the contract does not have{told}; correct it"
                self._find("covers", message, name, node, "covers")
            elif field in self._contract.system_fields:
                message = f"{shown(name)} covers {shown(field)}, which only the workflow writes, so that no edit would void it; drop it"
                self._find("covers", message, name, node, "covers")

    def _agreement(self, name: str, node: b.ApprovalNode) -> None:
        if node.agree in {"n", "weight"} and not node.least:
            self._find("agree", f"{shown(name)} does not say how many; give `least`", name, node, "agree")
        if node.agree not in {"n", "weight"} and node.least:
            self._find("agree", f"{shown(name)} needs `agree: n` or `weight` for `least`", name, node, "least")
        if node.chain is not None and node.agree is not None:
            message = f"the stages of the chain of {shown(name)} say what has to be agreed; drop `agree`"
            self._find("agree", message, name, node, "agree")

    def _approver(self, name: str, each: b.Approver) -> None:
        given = [field for field in APPROVER if getattr(each, field) is not None]
        if len(given) != 1:
            listed = ", ".join(f"`{field}`" for field in APPROVER)
            message = (
                f"an approver of {shown(name)} is one of {listed}, and not {'several' if given else 'none'} of them"
            )
            self._find("approvers", message, name, each)
        if each.of is not None and each.resolver is None:
            self._find("approvers", "`of` is what a `resolver` is given, and there is none; drop it", name, each, "of")

    def _times(self, name: str, node: b.ApprovalNode) -> None:
        """Due dates, reminders and escalation rise, and come before the time is over."""
        over = None if node.timeout is None else duration_of(node.timeout)
        given = [("due", node.due), *(("remind", each) for each in node.remind)]
        for field, text in given:
            time = None if text is None else duration_of(text)
            if time is not None and over is not None and time >= over:
                self._find(
                    "times",
                    f"`{field}` of {shown(name)} comes when its time is over; make it shorter",
                    name,
                    node,
                    field,
                )
        reminders = [duration_of(each) for each in node.remind]
        if len(set(reminders)) < len(reminders):
            self._find(
                "times", f"{shown(name)} reminds twice at the same time; name each time once", name, node, "remind"
            )
        if node.escalate_to is not None and node.due is None:
            message = f"{shown(name)} escalates once it is due, and `due` is not there; give it"
            self._find("times", message, name, node, "escalate_to")

        if node.calendar is not None:
            self._working(name, node, [*given, ("timeout", node.timeout)])

    def _working(
        self, name: str, node: b.ApprovalNode | b.WaitTimerNode, given: Sequence[tuple[str, str | None]]
    ) -> None:
        """Times of a calendar say what are days and what are hours: 36 hours are four and a half days of eight, or one and a half by the clock."""
        for field, text in given:
            time = None if text is None else duration_of(text)
            if text is not None and time is not None and text.strip() != duration_text(time):
                told = f"`{field}` of {shown(name)} counts working time; write `{duration_text(time)}`, or as many hours as fit in a day"
                self._find("times", f"{told}: days are working days, the rest is working hours", name, node, field)

    def _timer(self, name: str, node: b.WaitTimerNode) -> None:
        given = [field for field in TIMES if getattr(node, field) is not None]
        if len(given) != 1:
            listed = ", ".join(f"`{field}`" for field in TIMES)
            message = f"{shown(name)} waits by one of {listed}, and not by {'several' if given else 'none'} of them"
            self._find("wait", message, name, node)
        if node.time_zone is not None and node.cron is None:
            self._find("wait", f"{shown(name)} has a time zone and no `cron`; drop it", name, node, "time_zone")
        if node.calendar is not None:
            self._working(name, node, [("duration", node.duration)])
            if node.duration is None:
                message = f"{shown(name)} has a calendar and no `duration` that it is for; drop it"
                self._find("wait", message, name, node, "calendar")
        if node.cron is not None:
            for wrong in calendar_findings(name, node.cron, node.time_zone or "UTC"):
                self._find("wait", wrong.message, name, node, "cron")

    def _rules(self, name: str, node: b.RuleNode) -> None:
        for called, count in Counter(each.name for each in node.rules).items():
            if count > 1:
                self._find(
                    "rule", f"{shown(name)} has {count} rules {shown(called)}; name each once", name, node, "rules"
                )
        for rule in node.rules:
            wanted = {"require_field": "field", "outcome": "outcome"}.get(rule.effect, "")
            for field in ("field", "outcome"):
                if (getattr(rule, field) is not None) is not (field == wanted):
                    told = f"needs `{field}`" if field == wanted else f"has no use for `{field}`"
                    message = f"the rule {shown(rule.name)} of {shown(name)} {told}; its effect is {rule.effect}"
                    self._find("rule", message, name, rule, field)
            if rule.field is not None and rule.field not in self._contract.fields:
                told = suggestion(rule.field, self._contract.fields)
                message = (
                    f"the rule {shown(rule.name)} requires {shown(rule.field)}, which the contract does not have{told}"
                )
                self._find("rule", message, name, rule, "field")
            if rule.outcome in {"error", "timeout", "*"}:
                self._find(
                    "rule", f"{shown(rule.outcome)} is a word of the engine's; take another", name, rule, "outcome"
                )

    def _find(self, code: str, message: str, name: str, part: object, field: str = "") -> None:  # noqa: PLR0917 - a finding and its place
        self._report(code, message, node=name, part=part, field=field)
