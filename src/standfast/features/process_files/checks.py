"""What can be wrong with a workflow whose parts are sound by themselves: names that stand for nothing, ways that nobody can take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from standfast.errors import ExpressionError
from standfast.expressions.model.suggestions import suggestion
from standfast.features.process_files import expressions as f
from standfast.features.process_files.format import (
    ActionStep,
    ApprovalStep,
    Assignee,
    AwaitedSpec,
    NotificationStep,
    Step,
    SystemStep,
    TerminalStep,
    TransitionSpec,
    TriggerSpec,
    WaitStep,
)
from standfast.features.process_files.outline import AGAIN, EXPIRED, FAILED, Asking, Calling, Outline
from standfast.graph.model import Stored
from standfast.graph.source_files.parsing import shown
from standfast.graph.source_files.reading import EnoughError, Findings, StructReader
from standfast.graph.source_files.tree import Fields, Mark, Scalar, Tree
from standfast.graph.source_files.values import Condition, Formula, empties
from standfast.graph.values.value_checks import empty_words

ASSIGNED: Final = ("role", "user", "expression", "resolver")
AWAITED: Final = ("duration", "until", "cron", "event", "events")
_NEEDS: Final = {
    "key": ("event",),
    "condition": ("event",),
    "need": ("events",),
    "time_zone": ("cron",),
    "timeout": ("event", "events"),
    "on_timeout": ("event", "events"),
}
"""What a field of a wait is for."""
_OWN_STEP: Final = "#"
"""How the nodes begin that have no step."""
_OWN_NAME: Final = "_"
"""How the names in the state begin that only the engine sets."""
_WORDS: Final = re.compile(r"[\w .,:;!?-]+")
_UNLISTED: Final = 20
"""Above so many steps a message does not list them."""


class Checks:
    """Checks one workflow."""

    def __init__(
        self, outline: Outline, reader: StructReader, findings: Findings, allowance: f.ExpressionBudget
    ) -> None:
        self._allowance = allowance
        self._outline = outline
        self._workflow = outline.workflow
        self._reader = reader
        self._findings = findings
        written = reader.items(self._workflow, "steps")
        self._ids = dict(_written_ids(written))
        """All ids that were written, also those of steps that could not be read."""
        self._has_ids = len(list(_written_ids(written))) == len(written)
        """Whether every step has one; otherwise no name is said to be none."""
        self.is_whole = len(self._workflow.steps) == len(written)
        self.is_whole &= len(self._workflow.transitions) == len(reader.items(self._workflow, "transitions"))
        """Whether every step and every transition could be read; otherwise nothing is said about ways that may be missing."""

    def run(self) -> None:
        """Find all that is wrong."""
        self._names()
        for step in self._workflow.steps:
            for field, then in empties(step):
                self._find("empty", empty_words(f"`{field}` of {shown(step.id)}", then), step, field)
            match step:
                case ActionStep() | ApprovalStep():
                    self._asking(step)
                case SystemStep() | NotificationStep():
                    self._calling(step)
                case WaitStep():
                    self._waiting(step)
                case TerminalStep():
                    self._ending(step)
        for transition in self._workflow.transitions:
            self._transition(transition)
        for trigger in self._workflow.triggers:
            self._trigger(trigger)
        if self.is_whole:
            self._ways()

    # -- names

    def _names(self) -> None:
        seen: set[str] = set()
        for step in self._workflow.steps:
            if step.id in seen:
                message = f"there are several steps with the id {shown(step.id)}; give each an id of its own"
                self._find("duplicate_step", message, step, "id")
            if step.id.startswith(_OWN_STEP):
                message = f"{shown(step.id)} begins with {_OWN_STEP}, as what is no step does; take another id"
                self._find("reserved_name", message, step, "id")
            seen.add(step.id)
        workflow = self._workflow
        if workflow.initial_step is not None:
            self._step(workflow.initial_step, "`initial_step`", workflow, "initial_step")
        if workflow.on_timeout is not None:
            self._step(workflow.on_timeout, "`on_timeout`", workflow, "on_timeout")
            times = [each.timeout for each in workflow.steps if isinstance(each, Asking | WaitStep)]
            if workflow.timeout is None and not any(times):
                message = "`on_timeout` says where to go when time is over, and there is no `timeout`; give one"
                self._find("on_timeout", message, workflow, "on_timeout")

    def _step(self, name: str, what: str, part: object, field: str) -> None:
        """A name that must be that of a step."""
        if name in self._ids or not self._has_ids:
            return
        known = list(self._ids)
        told = suggestion(name, known) or (f"; there are {', '.join(known)}" if len(known) <= _UNLISTED else "")
        self._find("unknown_step", f"{what} names {shown(name)}, which is no step{told}", part, field)

    # -- steps

    def _asking(self, step: Asking) -> None:
        self._expiring(step)
        self._assignees(step)
        if step.form is not None:
            self._form(step, step.form)
        if step.operation is None:
            for field in ("input", "output", "retry"):
                if self._reader.has(step, field):
                    message = (
                        f"{shown(step.id)} calls nothing, so it has no use for `{field}`; give `operation`, or drop it"
                    )
                    self._find("operation", message, step, field)
        self._mappings(step, "input", step.input, "given")
        self._mappings(step, "output", step.output, "kept")

    def _assignees(self, step: Asking) -> None:
        given = [name for name in ("assignee", "assignees", "chain") if getattr(step, name)]
        if len(given) > 1:
            message = f"{shown(step.id)} says by {' and '.join(f'`{each}`' for each in given)} who is asked; keep one"
            self._find("assignee", message, step, given[-1])
        for each in [*([step.assignee] if step.assignee else []), *(step.assignees or [])]:
            self._assignee(each)
        for name in step.distinct_from or ():
            self._step(name, f"`distinct_from` of {shown(step.id)}", step, "distinct_from")

    def _assignee(self, each: Assignee) -> None:
        given = [name for name in ASSIGNED if getattr(each, name) is not None]
        if len(given) != 1:
            kinds = ", ".join(f"`{name}`" for name in ASSIGNED)
            told = "has several of them; leave one" if given else "has none of them; give one"
            message = f"an assignee is one of {kinds}, and this one {told}"
            self._find("assignee", message, each)
        if each.of is not None and each.resolver is None:
            self._find("assignee", "`of` is what a `resolver` is given, and there is none; drop it", each, "of")
        if each.expression is not None:
            read = partial(f.mapping_of, each.expression, "data")
            self._expression(read, "`expression`", self._reader.at(each, "expression"))

    def _form(self, step: Step, form: dict[str, object]) -> None:
        """What a page needs of a form; that it is a JSON Schema is for the graph to say."""
        properties = form.get("properties", {})
        if form.get("type", "object") != "object" or not isinstance(properties, dict):
            message = (
                f"the form of {shown(step.id)} must be a JSON Schema of an object: `type: object`, and `properties`"
            )
            self._find("form", message, step, "form")
            return
        for word in ("order", "required"):
            names = form.get(word, [])
            if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
                message = f"`{word}` in the form of {shown(step.id)} is a list of names of its properties"
                self._find("form", message, step, "form", inner=word)
                continue
            for name in names:
                if name not in properties:
                    told = suggestion(name, properties) or f"; there are {', '.join(properties)}"
                    message = (
                        f"`{word}` in the form of {shown(step.id)} names {shown(name)}, which is no property{told}"
                    )
                    self._find("form", message, step, "form", inner=word)

    def _expiring(self, step: Asking | WaitStep) -> None:
        if step.on_timeout is None:
            return
        self._step(step.on_timeout, f"`on_timeout` of {shown(step.id)}", step, "on_timeout")
        if not self._outline.has_timeout(step):
            message = f"{shown(step.id)} says where to go when time is over, and has no `timeout`; give one"
            self._find("on_timeout", message, step, "on_timeout")
        if any(way.event == EXPIRED for way in self._outline.ways(step.id)):
            message = f"{shown(step.id)} has both `on_timeout` and a transition by `{EXPIRED}`; keep one"
            self._find("on_timeout", message, step, "on_timeout")

    def _calling(self, step: Calling) -> None:
        self._mappings(step, "input", step.input, "given")
        if isinstance(step, SystemStep):
            self._mappings(step, "output", step.output, "kept")

    def _waiting(self, step: WaitStep) -> None:
        given = [name for name in AWAITED if getattr(step, name)]
        if len(given) != 1:
            message = f"{shown(step.id)} waits for one of {', '.join(f'`{name}`' for name in AWAITED)}, and not {'several' if given else 'none'} of them"
            self._find("wait", message, step)
        for field, needs in _NEEDS.items():
            if self._reader.has(step, field) and not any(getattr(step, name) for name in needs):
                told = " or ".join(f"`{name}`" for name in needs)
                message = f"{shown(step.id)} has no {told}, so `{field}` has no meaning; drop it"
                self._find("wait", message, step, field)
        if step.until is not None:
            read = partial(f.mapping_of, step.until, "given")
            self._expression(read, "`until`", self._reader.at(step, "until"))
        self._awaited(step)
        for each in step.events or ():
            self._awaited(each)
        self._expiring(step)

    def _awaited(self, part: WaitStep | AwaitedSpec) -> None:
        if part.key is not None:
            self._expression(partial(f.mapping_of, part.key, "data"), "`key`", self._reader.at(part, "key"))
        if part.condition is not None:
            self._condition(part, part.condition, "awaited")

    def _trigger(self, trigger: TriggerSpec) -> None:
        if trigger.key is not None:
            self._expression(partial(f.mapping_of, trigger.key, "trigger"), "`key`", self._reader.at(trigger, "key"))
        if trigger.condition is not None:
            self._condition(trigger, trigger.condition, "trigger")
        self._mappings(trigger, "input", trigger.input, "trigger")

    def _ending(self, step: TerminalStep) -> None:
        for way in self._outline.ways(step.id):
            message = (
                f"{shown(step.id)} is a terminal, which nothing leads on from; drop the transition, or change its type"
            )
            self._find("terminal", message, way, "from")

    # -- transitions

    def _transition(self, way: TransitionSpec) -> None:
        self._step(way.source, "`from`", way, "from")
        self._step(way.to, "`to`", way, "to")
        if way.condition is not None:
            self._condition(way, way.condition)
        step = self._outline.steps.get(way.source)
        wrong = "" if step is None else self._wrong_event(step, way)
        if step is not None and wrong:
            self._find("event", f"{shown(step.id)} is never left by {shown(way.event)}: {wrong}", way, "event")

    def _wrong_event(self, step: Step, way: TransitionSpec) -> str:
        """Why a step is not left by an event; empty if it is."""
        match step:
            case TerminalStep():
                return ""  # Of which something else is said.
            case ActionStep() | ApprovalStep() if way.event == FAILED and step.operation is None:
                return "it calls nothing that could fail; give `operation`, or take another word"
            case ActionStep() | ApprovalStep() if way.event == "*":
                return "take a word of your own"
            case ActionStep() | ApprovalStep() if way.event == "cancelled" or way.event.startswith(
                ("step_", "workflow_")
            ):
                return "the trail calls its own entries so; take a word of your own"
            case ActionStep() | ApprovalStep():
                pass
            case _ if way.event not in self._outline.events(step):
                known = self._outline.events(step)
                return f"it can be {', '.join(known)}{suggestion(way.event, known)}"
            case _:
                pass
        if way.event == EXPIRED and not self._outline.has_timeout(step):
            return "it has no `timeout`; give one"
        if way.event == AGAIN and isinstance(step, SystemStep) and (way.to != step.id or way.condition is not None):
            return f"`{AGAIN}` makes its call again, so it leads back to {shown(step.id)}, without a condition"
        return ""

    # -- the whole

    def _ways(self) -> None:
        reached, begins = self._outline.reached(), self._outline.entry in self._outline.steps
        # Where it begins at no step, that is what is wrong, and is said elsewhere.
        if begins and not any(isinstance(self._outline.steps[name], TerminalStep) for name in reached):
            message = "no terminal step can be reached, so it never ends; add one, and a transition to it"
            self._find("no_terminal", message, self._workflow, "steps")
        for step in self._workflow.steps:
            answers = [way for way in self._outline.ways(step.id) if way.event not in {EXPIRED, FAILED}]
            if isinstance(step, Asking) and not answers:
                message = f"nobody can leave {shown(step.id)}; add a transition from it, such as `event: approved`"
                self._find("no_transition", message, step)

    # -- expressions

    def _condition(self, part: object, given: Condition, place: f.Place = "condition") -> None:
        self._expression(partial(f.condition_of, given, place), "the condition", self._reader.at(part, "condition"))

    def _mappings(self, step: Step | TriggerSpec, field: str, given: dict[str, Formula], place: f.Place) -> None:
        for name, value in given.items():
            at = self._reader.inner(step, field, name)
            if place != "given" and name.startswith(_OWN_NAME):
                message = f"{shown(name)} in `{field}` is a name that only the engine sets; give it another one"
                self._findings.add("reserved_name", message, at)
            self._expression(partial(f.mapping_of, value, place), f"`{name}` in `{field}`", at, remedy=_quoting(value))

    def _expression(self, read: partial[Stored], what: str, at: Mark, *, remedy: str = "") -> None:
        if not self._allowance.covers(read.args[0]):
            told = f"the different expressions of the file come to more than {f.MOST:,} characters, each counted with {f.EACH} more"
            self._findings.add("too_many_expressions", f"{told}; split the file", at)
            raise EnoughError
        try:
            read()
        except ExpressionError as error:
            self._findings.add("expression", f"{what} is wrong: {error}{remedy}", at)

    # -- findings

    def _find(self, code: str, message: str, part: object, field: str = "", *, inner: str = "") -> None:
        at = self._reader.inner(part, field, inner) if inner else self._reader.at(part, field)
        self._findings.add(code, message, at)


def _quoting(value: object) -> str:
    """How to write a text where an expression stands, if what stands there looks like words."""
    if not isinstance(value, str) or _WORDS.fullmatch(value) is None:
        return ""
    return f"; if you mean the text itself, quote it inside the expression: \"'{value}'\""


def _written_ids(steps: list[Tree]) -> Iterator[tuple[str, Mark]]:
    for step in steps:
        given = step.fields.get("id") if isinstance(step, Fields) else None
        if given is not None and isinstance(given.tree, Scalar) and isinstance(given.tree.value, str):
            yield given.tree.value, given.tree.at
