"""The saga builder.

order = (
    Saga("order", version=1)
    .step("reserve", reserve).on_failure("release", release)
    .step("charge", charge, undo=refund, attempts=3, delay=2)
    .then("ship", ship).build()
)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Literal, Self, Unpack

import msgspec

from standfast.errors import DefinitionError
from standfast.expressions.model.options import Spelling
from standfast.features.sagas.branches import OpenFork
from standfast.features.sagas.builder_state import BuilderState, Loose
from standfast.features.sagas.definition import CONDITION_ENTRY, IMPLICIT_JOIN, SagaDefinition, describe
from standfast.features.sagas.expressions import can_build, expression_of
from standfast.features.sagas.human_tasks import question, word_for_rejection
from standfast.features.sagas.notifications import notice
from standfast.features.sagas.options import Duration, StepOptions, milliseconds, work_of
from standfast.features.sagas.task_options import TaskOptions, with_options
from standfast.features.sagas.waits import Question, Waits, trigger_of
from standfast.graph.compiler import compile_graph
from standfast.graph.definition import Function
from standfast.graph.model import (
    BRANCH,
    CONFIRMED,
    ERROR,
    FALSE,
    OK,
    REJECTED,
    TIMEOUT,
    TRUE,
    WITHDRAWN,
    CallOp,
    ConditionOp,
    EventTrigger,
    HumanOp,
    JoinOp,
    Losers,
    Node,
    NoReturnOp,
    OnEmpty,
    OnReject,
    Plain,
    Policies,
    Rights,
    SavePointOp,
    SplitOp,
    TaskOp,
)
from standfast.graph.scopes import DEEPEST_FORKS

DEEPEST_WAYS = DEEPEST_FORKS
"""How deep ways may lie inside of one another."""

Strategy = Literal["all", "any"] | int
"""All branches, the first one, or a number of them."""


class TaskSpec(msgspec.Struct, frozen=True):
    """A task for `parallel`."""

    name: str
    handler: Function | str
    options: StepOptions


def task(name: str, handler: Function | str, **options: Unpack[StepOptions]) -> TaskSpec:
    """A task for `parallel`."""
    return TaskSpec(name, handler, options)


class Branch(Waits):
    """A chain of steps under construction: the saga itself, or one branch of a fork or condition."""

    def __init__(self, parts: BuilderState, *, depth: int = 0) -> None:
        self._parts = parts
        self._depth = depth
        """Inside of how many other ways it lies."""
        self._loose: list[Loose] = []
        """Where the next step continues from; empty at the beginning."""
        self._ends: list[Loose] = []
        """Where side ways end: they meet at the join of the branch's fork, or end the saga."""
        self._entry: str | None = None
        self._last: Node | None = None
        self._fork: OpenFork | None = None
        """A fork, or parallel, that has no join yet."""
        self._unjoined: list[str] = []
        """Forks in side ways that have no join."""

    # -- steps

    def step(
        self,
        name: str,
        handler: Function | str,
        *,
        undo: Function | str | None = None,
        on_error: Build | None = None,
        **options: Unpack[StepOptions],
    ) -> Self:
        """A task that follows the previous step; `on_error` builds the way that is taken when it fails for good, `undo` undoes it (see `on_failure`), in the commit if the step is."""
        self._parts.take(handler, name, options)
        node = Node(
            id=name,
            op=TaskOp(work=work_of(handler, self._parts.default_name(name), options)),
            priority=options.get("priority", 0),
            metadata=options.get("metadata", {}),
        )
        self._append(node)
        if undo is not None:
            self.on_failure(f"undo {name}", undo, transactional=options.get("transactional", False))
        return self._side(name, ERROR, on_error)

    then = step

    def on_failure(self, name: str, handler: Function | str, **options: Unpack[StepOptions]) -> Self:
        """What undoes the step before; it is called only in a rollback. Its priority and metadata are the step's, unless it has its own."""
        self._check_name(name)
        last = self._last
        if last is None or not isinstance(last.op, TaskOp | HumanOp | CallOp):
            where = last.id if last else name
            self._parts.find(
                "nothing_to_undo", f"{name!r} follows a step that calls nothing, so there is nothing to undo", where
            )
            return self
        if last.compensation is not None:
            self._parts.find("two_compensations", f"{last.id!r} has a compensation already", last.id)
        self._parts.take(handler, name, options)
        undone = msgspec.structs.replace(
            last,
            compensation=work_of(handler, self._parts.default_name(name), options),
            compensation_name=name,
            compensation_priority=options.get("priority"),
            compensation_metadata=options.get("metadata"),
        )
        self._parts.replace_last(undone)
        self._last = undone
        return self

    def save_point(self, name: str) -> Self:
        """A rollback after a failure does not go back beyond this."""
        return self._append(Node(id=name, op=SavePointOp()))

    def point_of_no_return(self, name: str) -> Self:
        """Nothing before this is ever undone, not even by a cancellation."""
        return self._append(Node(id=name, op=NoReturnOp()))

    def human(
        self,
        name: str,
        *,
        subject: str = "",
        capability: str = "",
        timeout: Duration | None = None,
        on_rejected: Build | OnReject | None = None,
        on_withdrawn: Build | None = None,
        on_timeout: Build | None = None,
        **options: Unpack[TaskOptions],
    ) -> Self:
        """Ask people, with values of the data in the holes of the subject, `{supplier.name}`, and with those that `shows` names.

        Those may answer whom the options ask and who have the `capability`. The saga goes on when it is confirmed. A rejection takes the way that `on_rejected` builds; with `"fail"` the step has failed,
        and what was done is undone; otherwise it aborts the saga. A question that was taken back is rejected unless `on_withdrawn` builds a way.
        `TaskOptions` are also the form and the times of the question.
        """
        limit = None if timeout is None else milliseconds(timeout)
        gate = self._gate(name, options["when"]) if "when" in options else []
        word = word_for_rejection(self._parts, name, on_rejected)
        op = question(self._parts, name, subject=subject, on_reject=word, options=options)
        op = with_options(self._parts, name, op, options)
        self._append(Node(id=name, op=op, timeout_ms=limit, capability=capability), on=CONFIRMED)
        self._loose += gate
        self._side(name, REJECTED, None if isinstance(on_rejected, str) else on_rejected)
        self._side(name, WITHDRAWN, on_withdrawn)
        return self._side(name, TIMEOUT, on_timeout)

    wait_human_confirm = human

    def _gate(self, name: str, condition: str | dict[str, object]) -> list[Loose]:
        """A condition before a step, and the way past it."""
        gate = f"{name}?"
        self._append(Node(id=gate, op=ConditionOp(expression=self._expression(name, condition, None))), on=TRUE)
        return [(gate, FALSE)]

    def notify(
        self,
        name: str,
        *,
        to: str | Sequence[str],
        subject: str,
        body: str = "",
        html: str = "",
        channel: str | Sequence[str] = "in_app",
        wait: bool = False,
        on_error: Build | None = None,
    ) -> Self:
        """Tell people something: users, addresses with an @, and roles as `role:finance`, with values of the data in the holes of all texts.

        The saga goes on at once, and the history tells who could not be told. With `wait` it goes on once everybody is told, and the step
        fails if somebody cannot be; `on_error` builds the way that is taken then. `html` is the body for channels that show it.
        """
        op = notice(self._parts, name, to=to, subject=subject, body=body, html=html, channel=channel, wait=wait)
        self._append(Node(id=name, op=op))
        return self._side(name, ERROR, on_error)

    def call(
        self,
        name: str,
        definition: str | SagaDefinition,
        *,
        version: str | int = "",
        timeout: Duration | None = None,
        on_error: Build | None = None,
        on_timeout: Build | None = None,
        detached: bool = False,
    ) -> Self:
        """Start another workflow with the data so far and wait for its end; its result is found under the name of the step.

        Named, it is the newest version at that time, unless one is given; a finished saga is called in its own version.

        The other workflow is a part of this one: it is stopped with it, and a rollback of this one undoes it, also if it has completed,
        unless `on_failure` says how to undo the step. One that has undone itself is left alone. With `detached` it is no part: it is
        only waited for.
        """
        if isinstance(definition, SagaDefinition):
            version = version or definition.version
            definition = definition.name
        limit = None if timeout is None else milliseconds(timeout)
        self._append(
            Node(id=name, op=CallOp(definition=definition, version=str(version), detached=detached), timeout_ms=limit)
        )
        self._side(name, ERROR, on_error)
        return self._side(name, TIMEOUT, on_timeout)

    # -- ways that part

    def condition(
        self,
        name: str,
        expression: str | dict[str, object],
        otherwise: Build | None = None,
        *,
        spelling: Spelling | None = None,
    ) -> Self:
        """Go on if the condition holds; else build the other way with `otherwise`, which does not come back."""
        self._append(Node(id=name, op=ConditionOp(expression=self._expression(name, expression, spelling))), on=TRUE)
        if otherwise is None:
            self._ends.append((name, FALSE))
        return self._side(name, FALSE, otherwise)

    def parallel(self, name: str, *tasks: TaskSpec) -> Self:
        """Run tasks at the same time; the saga goes on when all are done."""
        made: list[object] = list(tasks)  # What a caller without types may give.
        for each in made:
            if not isinstance(each, TaskSpec):
                given = type(each).__name__
                self._parts.find("task", f"{name!r} is given a {given}; give it tasks, task('…', handler)", name)
        builders = [_one_task(each) for each in made if isinstance(each, TaskSpec)]
        return self._split(name, builders, is_parallel=True)

    def fork(self, name: str, *branches: Build) -> Self:
        """Run branches at the same time; a `join` lets them meet."""
        return self._split(name, branches, is_parallel=False)

    def join(self, name: str, strategy: Strategy = "all", *, losers: Losers = "undo") -> Self:
        """Wait for all branches of the fork before, for the first one, or for a number of them.

        `losers` says what becomes of the others: what they did is undone, they `finish` first, or they just `stop`.
        """
        return self._join(name, strategy, losers=losers)

    def _join(self, name: str, strategy: Strategy, *, losers: Losers = "undo", answer: str = "") -> Self:
        if self._fork is None:
            self._parts.find("join_without_fork", f"{name!r} follows no fork or parallel", name)
            return self
        if isinstance(strategy, bool) or not (isinstance(strategy, int) or strategy in ("all", "any")):
            self._parts.find(
                "join_strategy", f"{name!r} joins {strategy!r}; it can join 'all', 'any' or a number", name
            )
            strategy = "all"
        elif isinstance(strategy, int) and strategy < 1:
            self._parts.find("join_count", f"{name!r} joins {strategy} branches; it must be at least one", name)
        fork, self._fork = self._fork, None
        self._parts.findings += fork.check_join(name)
        if isinstance(strategy, int):
            op = JoinOp(split=fork.name, strategy="count", count=strategy, losers=losers, answer=answer)
        else:
            op = JoinOp(split=fork.name, strategy=strategy, losers=losers, answer=answer)
        return self._append(Node(id=name, op=op))

    def join_step(
        self, name: str, wait_for: Sequence[str], strategy: Strategy = "all", *, losers: Losers = "undo"
    ) -> Self:
        """Deprecated: `join` finds out by itself what to wait for."""
        warnings.warn(
            "join_step is deprecated; use join, which knows what to wait for", DeprecationWarning, stacklevel=2
        )
        if not isinstance(wait_for, list | tuple) or not all(isinstance(each, str) for each in wait_for):
            self._parts.find("step_name", f"{name!r} waits for {wait_for!r}; give a list of names of steps", name)
            return self.join(name, strategy, losers=losers)
        known = {node.id for node in self._parts.nodes}
        missing = [each for each in wait_for if each not in known and not each.startswith(CONDITION_ENTRY)]
        for each in missing:
            self._parts.find("unknown_step", f"{name!r} waits for {each!r}, which does not exist", name)
        if self._fork is not None:
            named = [each for each in wait_for if each not in missing]
            self._parts.findings += self._fork.check_names(name, named)
            self._parts.awaited[name] = tuple(wait_for)
        return self.join(name, strategy, losers=losers)

    def for_each(
        self,
        name: str,
        items: str,
        body: Build,
        *,
        limit: int | None = None,
        item: str = "item",
        on_empty: OnEmpty | None = None,
    ) -> Self:
        """Run a branch for each item of a list; its answers are a list under the name of the step.

        `on_empty` says what a list without items comes to: the saga goes on (`skip`), or the step fails. Without it, the step fails if
        the branch asks people, because nobody would be asked; otherwise the saga goes on.
        """
        stored = self._expression(name, items, "mapping")
        begun = len(self._parts.nodes)
        self._split(name, [body], is_parallel=True, items=stored, limit=limit, item=item)
        if on_empty is None:
            asks = any(isinstance(node.op, HumanOp) for node in self._parts.nodes[begun:])
            on_empty = "fail" if asks else "skip"
        if on_empty != "skip":
            op = SplitOp(items=stored, limit=limit, item=item, on_empty=on_empty)
            self._parts.replace_last(Node(id=name, op=op))
        return self

    # -- how

    def _side(self, name: str, outcome: str, build: Build | None) -> Self:
        """Another way out of a step, which does not come back."""
        if build is not None:
            branch = self._built(name, [(name, outcome)], build)
            self._ends += branch.ends()
            self._unjoined += branch.unjoined()
        return self

    def ends(self) -> list[Loose]:
        """Where the branch ends."""
        self._close_parallel()
        return [*self._loose, *self._ends]

    def unjoined(self) -> list[str]:
        """The forks on its ways that have no join."""
        inside = [] if self._fork is None else [self._fork.name, *self._fork.unjoined]
        return [*inside, *self._unjoined]

    def _built(self, name: str, loose: list[Loose], build: Build) -> Branch:
        """A branch as a function of the author's has built it."""
        branch = Branch(self._parts, depth=self._depth + 1)
        branch._loose = loose
        if (
            branch._depth > DEEPEST_WAYS
        ):  # Building it would exhaust the stack: the author's functions call one another.
            message = f"a way of {name!r} is nested deeper than {DEEPEST_WAYS}; call another saga for the inner ones"
            self._parts.find("nested", message, name)
            return branch
        if not can_build(build):
            given = type(build).__name__
            remedy = "give a function of one argument that adds steps to it, such as lambda way: way.step('…', handler)"
            self._parts.find("branch", f"a way of {name!r} would be built by a {given}; {remedy}", name)
            return branch
        build(branch)
        outcome = loose[0][1]
        if not branch.is_begun and outcome != FALSE:  # Where a condition does not hold, nothing need follow.
            way = f"a branch of {name!r}" if outcome == BRANCH else f"the way of {name!r} for {outcome!r}"
            self._parts.find("empty_branch", f"{way} has no steps; add one, or leave it out", name)
        return branch

    def _check_name(self, name: object) -> None:
        """A caller without types may give anything."""
        if not isinstance(name, str):
            self._parts.find("step_name", f"the name of a step is {name!r}; it must be text", str(name))

    def _append(self, node: Node, *, on: str = OK) -> Self:
        self._check_name(node.id)
        if not isinstance(node.op, JoinOp):
            self._close_parallel()
            if self._fork is not None:
                fork = self._fork.name
                self._parts.find(
                    "fork_without_join", f"{node.id!r} follows the fork {fork!r}; put a join in between", node.id
                )
                self._fork = None
        self._parts.add(node)
        if self._entry is None:
            self._entry = node.id
        self._parts.connect(self._loose, node.id)
        self._loose = [(node.id, on)]
        self._last = node
        return self

    def _split(
        self,
        name: str,
        branches: Sequence[Build],
        *,
        is_parallel: bool,
        items: dict[str, Plain] | None = None,
        limit: int | None = None,
        item: str = "item",
    ) -> Self:
        self._append(Node(id=name, op=SplitOp(items=items, limit=limit, item=item)))
        fork = OpenFork(name, is_parallel=is_parallel)
        ends: list[Loose] = []
        for build in branches:
            begun = len(self._parts.nodes)
            branch = self._built(name, [(name, BRANCH)], build)
            ends += (branch_ends := branch.ends())
            fork.add(self._parts.nodes[begun:], branch_ends, branch.unjoined())
        if is_parallel and items is None:
            self._parts.parallels.add(name)
        self._loose = ends
        self._fork = fork
        self._last = None
        return self

    @property
    def is_begun(self) -> bool:
        """Whether the branch has a step."""
        return self._entry is not None

    def _close_parallel(self) -> None:
        """A parallel step meets by itself, unless the next call is a join of its own."""
        if self._fork is not None and self._fork.is_parallel:
            self._join(f"{self._fork.name}{IMPLICIT_JOIN}", "all", answer=self._fork.name)

    def _expression(self, name: str, source: str | dict[str, object], spelling: Spelling | None) -> dict[str, Plain]:
        return expression_of(self._parts, name, source, spelling)


Build = Callable[[Branch], object]
"""Builds a branch: it is given an empty one and adds steps to it."""


class Saga(Branch):
    """A saga under construction. `build` gives its definition, or raises with everything that is wrong with it.

    With `dlq` a step that fails for good waits for an operator instead of being rolled back. `deadline` cancels the saga when it takes
    longer. `stop_grace` is how long a cancellation waits for handlers that were told to stop. `capability` is what an actor must have
    to start the saga, `cancel_capability` to cancel or abort it; without one it is the same as to start it.
    """

    def __init__(
        self,
        name: str,
        version: int | str = 1,
        *,
        dlq: bool = False,
        deadline: Duration | None = None,
        stop_grace: Duration = 30,
        capability: str = "",
        cancel_capability: str = "",
        replaceable: bool = False,
    ) -> None:
        super().__init__(BuilderState(f"{name}-v{version}"))
        self._name = str(name)
        self._version = str(version)
        named: object = name  # What a caller without types gave.
        if not isinstance(named, str):
            told = f'the name of a saga is a text, not {named!r}; write Saga("order")'
            self._parts.find("unnamed_workflow", told)
        is_patient: object = dlq  # What a caller without types gave.
        if not isinstance(is_patient, bool):
            self._parts.find("dlq", f"dlq of {name!r} is {dlq!r}; give True or False")
        self._rights = Rights(start=capability, cancel=cancel_capability, replaceable=replaceable)
        self._policies = Policies(
            on_failure="dlq" if dlq is True else "compensate",
            deadline_ms=None if deadline is None else milliseconds(deadline),
            stop_grace_ms=milliseconds(stop_grace),
        )
        self._triggers: list[EventTrigger] = []

    def trigger(
        self,
        event: str,
        *,
        key: str = "",
        when: Question = "",
        input: dict[str, str] | None = None,  # noqa: A002 - the word that everybody uses for it
    ) -> Self:
        """Have every published event of this name start a run of the newest version, once for each event.

        The expressions read what the event brings as `event`, and the `key` that it was published for: `key` gives the run's business key,
        `when` says which events count, `input` what the run gets, by name; without it that is what the event brings.
        """
        self._triggers.append(trigger_of(self._parts, event, key=key, when=when, input=input, named=self._name))
        return self

    def build(self) -> SagaDefinition:
        """The finished definition; DefinitionError lists every finding."""
        self._close_parallel()
        parts = self._parts
        if parts.findings:
            raise DefinitionError(self._name, parts.findings)
        graph = compile_graph(
            kind="saga",
            name=self._name,
            version=self._version,
            entry=self._entry or "",
            nodes=parts.nodes,
            edges=parts.edges,
            policies=self._policies,
            rights=self._rights,
            triggers=self._triggers,
        )
        return SagaDefinition(
            graph=graph, handlers=parts.handlers, steps=describe(graph, parts.parallels, parts.awaited)
        )


def _one_task(spec: TaskSpec) -> Build:
    return lambda branch: branch.step(spec.name, spec.handler, **spec.options)
