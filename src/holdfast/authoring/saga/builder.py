"""The saga builder.

order = (
    Saga("order", version=1)
    .step("reserve", reserve).on_failure("release", release)
    .step("charge", charge, retries=3, delay=2).on_failure("refund", refund)
    .then("ship", ship)
    .build()
)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Literal, Self, Unpack

import msgspec

from holdfast.authoring.saga.definition import IMPLICIT_JOIN, SagaDefinition, describe
from holdfast.authoring.saga.options import Duration, Function, StepOptions, milliseconds, work_of
from holdfast.authoring.saga.parts import Loose, Parts
from holdfast.errors import DefinitionError, ExpressionError
from holdfast.expressions import Options, parse
from holdfast.expressions.options import Spelling
from holdfast.machine.compiling import compile_graph
from holdfast.machine.graph import (
    BRANCH,
    CONFIRMED,
    ERROR,
    FALSE,
    OK,
    REJECTED,
    TIMEOUT,
    TRUE,
    Call,
    Condition,
    Human,
    Join,
    Node,
    NoReturn,
    Plain,
    Policies,
    SavePoint,
    Split,
    Task,
    WaitEvent,
    WaitTimer,
)

SAGA_NAMES = frozenset({"input", "instance_id", "step_name", "now", "actor"})
_OPTIONS = Options(root="input", namespaces=SAGA_NAMES)

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


class Branch:
    """A chain of steps under construction: the saga itself, or one branch of a fork or condition."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._loose: list[Loose] = []
        """Where the next step continues from; empty at the beginning."""
        self._ends: list[Loose] = []
        """Where side ways end: they meet at the join of the branch's fork, or end the saga."""
        self._entry = ""
        self._last: Node | None = None
        self._fork: Node | None = None
        """A fork, or parallel, that has no join yet."""
        self._members: list[set[str]] = []
        """The steps of each of its branches."""
        self._is_parallel = False

    # -- steps

    def step(
        self, name: str, handler: Function | str, *, on_error: Build | None = None, **options: Unpack[StepOptions]
    ) -> Self:
        """A task that follows the previous step; `on_error` builds the way that is taken when it fails for good."""
        self._parts.take(handler, name, options)
        node = Node(
            id=name,
            op=Task(work=work_of(handler, self._parts.default_name(name), options)),
            priority=options.get("priority", 0),
            metadata=options.get("metadata", {}),
        )
        self._append(node)
        return self._side(name, ERROR, on_error)

    then = step

    def on_failure(self, name: str, handler: Function | str, **options: Unpack[StepOptions]) -> Self:
        """What undoes the step before; it is called only in a rollback."""
        last = self._last
        if last is None or not isinstance(last.op, Task | Human | Call):
            where = last.id if last else name
            self._parts.find(
                "nothing_to_undo", f"{name!r} follows a step that calls nothing, so there is nothing to undo", where
            )
            return self
        for option in sorted({"priority", "metadata"} & options.keys()):
            self._parts.find(
                "step_option",
                f"{option!r} of {name!r} is that of {last.id!r}, the step that it undoes; set it there",
                name,
            )
        if last.compensation is not None:
            self._parts.find("two_compensations", f"{last.id!r} has a compensation already", last.id)
        self._parts.take(handler, name, options)
        undone = msgspec.structs.replace(
            last, compensation=work_of(handler, self._parts.default_name(name), options), compensation_name=name
        )
        self._parts.replace_last(undone)
        self._last = undone
        return self

    def save_point(self, name: str) -> Self:
        """A rollback after a failure does not go back beyond this."""
        return self._append(Node(id=name, op=SavePoint()))

    def point_of_no_return(self, name: str) -> Self:
        """Nothing before this is ever undone, not even by a cancellation."""
        return self._append(Node(id=name, op=NoReturn()))

    def human(
        self,
        name: str,
        *,
        subject: str = "",
        role: str = "",
        timeout: Duration | None = None,
        on_rejected: Build | None = None,
        on_timeout: Build | None = None,
    ) -> Self:
        """Ask a person. The saga goes on when it is confirmed; a rejection takes the way of `on_rejected`, or else aborts the saga."""
        limit = None if timeout is None else milliseconds(timeout)
        self._append(Node(id=name, op=Human(subject=subject, role=role), timeout_ms=limit), on=CONFIRMED)
        self._side(name, REJECTED, on_rejected)
        return self._side(name, TIMEOUT, on_timeout)

    wait_human_confirm = human

    def wait(self, name: str, duration: Duration) -> Self:
        """Let time go by."""
        return self._append(Node(id=name, op=WaitTimer(duration_ms=milliseconds(duration))))

    def wait_for(
        self, name: str, signal: str, *, timeout: Duration | None = None, on_timeout: Build | None = None
    ) -> Self:
        """Wait for a signal; what it brings is the answer of the step."""
        limit = None if timeout is None else milliseconds(timeout)
        self._append(Node(id=name, op=WaitEvent(signal=signal), timeout_ms=limit))
        return self._side(name, TIMEOUT, on_timeout)

    def call(
        self,
        name: str,
        definition: str,
        *,
        version: str | int = "",
        timeout: Duration | None = None,
        on_error: Build | None = None,
        on_timeout: Build | None = None,
    ) -> Self:
        """Start another workflow with the data so far and wait for its end; its result is found under the name of the step."""
        limit = None if timeout is None else milliseconds(timeout)
        self._append(Node(id=name, op=Call(definition=definition, version=str(version)), timeout_ms=limit))
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
        self._append(Node(id=name, op=Condition(expression=self._expression(name, expression, spelling))), on=TRUE)
        if otherwise is None:
            self._ends.append((name, FALSE))
        return self._side(name, FALSE, otherwise)

    def parallel(self, name: str, *tasks: TaskSpec) -> Self:
        """Run tasks at the same time; the saga goes on when all are done."""
        return self._split(name, [_one_task(each) for each in tasks], is_parallel=True)

    def fork(self, name: str, *branches: Build) -> Self:
        """Run branches at the same time; a `join` lets them meet."""
        return self._split(name, branches, is_parallel=False)

    def join(self, name: str, strategy: Strategy = "all") -> Self:
        """Wait for all branches of the fork before, for the first one, or for a number of them."""
        if self._fork is None:
            self._parts.find("join_without_fork", f"{name!r} follows no fork or parallel", name)
            return self
        if isinstance(strategy, int) and strategy < 1:
            self._parts.find("join_count", f"{name!r} joins {strategy} branches; it must be at least one", name)
        if not isinstance(strategy, int) and strategy not in {"all", "any"}:
            self._parts.find(
                "join_strategy", f"{name!r} joins {strategy!r}; it can join 'all', 'any' or a number", name
            )
            strategy = "all"
        fork, self._fork = self._fork, None
        if isinstance(strategy, int):
            op = Join(split=fork.id, strategy="count", count=strategy)
        else:
            op = Join(split=fork.id, strategy=strategy)
        return self._append(Node(id=name, op=op))

    def join_step(self, name: str, wait_for: Sequence[str], strategy: Strategy = "all") -> Self:
        """Deprecated: `join` finds out by itself what to wait for."""
        warnings.warn(
            "join_step is deprecated; use join, which knows what to wait for", DeprecationWarning, stacklevel=2
        )
        known = {node.id for node in self._parts.nodes}
        for missing in [each for each in wait_for if each not in known and not each.startswith("cond#")]:
            self._parts.find("unknown_step", f"{name!r} waits for {missing!r}, which does not exist", name)
        named = {each.removeprefix("cond#") for each in wait_for}
        for branch in [each for each in self._members if self._fork is not None and not each & named]:
            steps = ", ".join(repr(each) for each in sorted(branch))
            message = f"{name!r} names no step of the branch with {steps}, but a join waits for every branch; use join"
            self._parts.find("unnamed_branch", message, name)
        return self.join(name, strategy)

    def for_each(self, name: str, items: str, body: Build, *, limit: int | None = None, item: str = "item") -> Self:
        """Run a branch for each item of a list; its answers are a list under the name of the step."""
        stored = self._expression(name, items, "mapping")
        self._split(name, [body], is_parallel=True, items=stored, limit=limit, item=item)
        return self

    # -- how

    def _side(self, name: str, outcome: str, build: Build | None) -> Self:
        """Another way out of a step, which does not come back."""
        if build is not None:
            branch = self._branch([(name, outcome)])
            build(branch)
            self._ends += branch.ends()
        return self

    def ends(self) -> list[Loose]:
        """Where the branch ends."""
        self._close_parallel()
        return [*self._loose, *self._ends]

    def _append(self, node: Node, *, on: str = OK) -> Self:
        name: object = node.id  # What a caller without types gave.
        if not isinstance(name, str):
            self._parts.find("step_name", f"the name of a step is {name!r}; it must be text", str(name))
        if not isinstance(node.op, Join):
            self._close_parallel()
            if self._fork is not None:
                fork = self._fork.id
                self._parts.find(
                    "fork_without_join", f"{node.id!r} follows the fork {fork!r}; put a join in between", node.id
                )
                self._fork = None
        self._parts.add(node)
        if not self._entry:
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
        node = Node(id=name, op=Split(items=items, limit=limit, item=item))
        self._append(node)
        ends: list[Loose] = []
        self._members = []
        for build in branches:
            begun = len(self._parts.nodes)
            branch = self._branch([(name, BRANCH)])
            build(branch)
            if not branch.entry:
                self._parts.find("empty_branch", f"a branch of {name!r} has no steps", name)
            ends += branch.ends()
            self._members.append({node.id for node in self._parts.nodes[begun:]})
        if is_parallel and items is None:
            self._parts.parallels.add(name)
        self._loose = ends
        self._fork = node
        self._is_parallel = is_parallel
        self._last = None
        return self

    @property
    def entry(self) -> str:
        """The first step of the branch."""
        return self._entry

    def _branch(self, loose: list[Loose]) -> Branch:
        branch = Branch(self._parts)
        branch._loose = loose
        return branch

    def _close_parallel(self) -> None:
        """A parallel step meets by itself, unless the next call is a join of its own."""
        if self._fork is not None and self._is_parallel:
            self.join(f"{self._fork.id}{IMPLICIT_JOIN}")

    def _expression(self, name: str, source: str | dict[str, object], spelling: Spelling | None) -> dict[str, Plain]:
        guessed: Spelling = "go" if isinstance(source, str) and source.lstrip().startswith("{{") else "native"
        try:
            parsed = parse(source, spelling=spelling or guessed, options=_OPTIONS)
        except ExpressionError as error:
            self._parts.find("bad_expression", f"the expression of {name!r} is wrong: {error}", name)
            return {}
        stored: dict[str, Plain] = parsed.to_data()
        return stored


Build = Callable[[Branch], object]
"""Builds a branch: it is given an empty one and adds steps to it."""


class Saga(Branch):
    """A saga under construction. `build` gives its definition, or raises with everything that is wrong with it.

    With `dlq` a step that fails for good waits for an operator instead of being rolled back. `deadline` cancels the saga when it takes
    longer. `stop_grace` is how long a cancellation waits for handlers that were told to stop.
    """

    def __init__(
        self,
        name: str,
        version: int | str = 1,
        *,
        dlq: bool = False,
        deadline: Duration | None = None,
        stop_grace: Duration = 30,
    ) -> None:
        super().__init__(Parts(name))
        self._name = name
        self._version = str(version)
        self._policies = Policies(
            on_failure="dlq" if dlq else "compensate",
            deadline_ms=None if deadline is None else milliseconds(deadline),
            stop_grace_ms=milliseconds(stop_grace),
        )

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
            entry=self._entry,
            nodes=parts.nodes,
            edges=parts.edges,
            policies=self._policies,
        )
        return SagaDefinition(graph=graph, handlers=parts.handlers, steps=describe(graph, parts.parallels))


def _one_task(spec: TaskSpec) -> Build:
    return lambda branch: branch.step(spec.name, spec.handler, **spec.options)
