"""The saga builder: what each call adds, and what `build` refuses."""

from __future__ import annotations

from typing import Any

import pytest

from standfast import Branch, ConfigurationError, DefinitionError, Saga, SagaDefinition, task
from standfast.graph.compiler import compile_graph
from standfast.graph.model import Edge, HandlerCall, Node, Policies, TaskOp

H = "work"
"""A handler by its name; nobody calls it here."""


def findings(saga: Saga) -> set[tuple[str, str]]:
    """Codes and places of all that `build` finds."""
    with pytest.raises(DefinitionError) as refused:
        saga.build()
    return {(each.code, each.position) for each in refused.value.diagnostics}


def ways(saga: SagaDefinition) -> dict[str, tuple[str, ...]]:
    """Where each step leads."""
    return {name: step.next for name, step in saga.steps.items()}


def two(name: str = "fork") -> Saga:
    """A saga with a fork of two branches, one step each, that have not met yet."""
    return Saga("s").fork(name, lambda one: one.step("a", H), lambda two: two.step("b", H))


@pytest.mark.row("F-001")
def test_a_definition_is_built_from_a_name_and_a_version() -> None:
    """`build` gives a definition that shows name, version and steps."""
    saga = Saga("order", 2).step("reserve", H).then("ship", H).build()
    assert (saga.name, saga.version, saga.id) == ("order", "2", "order-v2")
    assert ways(saga) == {"reserve": ("ship",), "ship": ()}


@pytest.mark.row("F-001")
def test_build_reports_everything_that_is_wrong() -> None:
    """What is wrong comes out of `build`, all of it at once, with the name of the saga."""
    broken = Saga("broken").step("a", H, attempts=-1).step("b", H, priority=101).step("a", H)
    with pytest.raises(DefinitionError, match="broken cannot be compiled") as refused:
        broken.build()
    assert {each.code for each in refused.value.diagnostics} == {"attempts", "priority", "duplicate_step"}


@pytest.mark.row("F-006")
def test_step_and_then_are_the_same() -> None:
    """Both append a task that follows the step before."""
    by_step = Saga("s").step("a", H).step("b", H).step("c", H).build()
    by_then = Saga("s").step("a", H).then("b", H).then("c", H).build()
    assert by_step.graph == by_then.graph
    assert ways(by_step) == {"a": ("b",), "b": ("c",), "c": ()}


@pytest.mark.row("F-007", "F-027")
def test_a_compensation_belongs_to_the_step_before() -> None:
    """`on_failure` names what undoes a step; the chain goes on from the step itself."""
    saga = Saga("s").step("a", H).on_failure("undo a", H).step("b", H).build()
    assert ways(saga) == {"a": ("b",), "b": ()}
    assert (saga.steps["a"].on_failure, saga.steps["b"].on_failure) == ("undo a", "")


@pytest.mark.parametrize("is_inside", [True, False])
def test_what_was_written_in_the_commit_is_undone_in_the_commit(*, is_inside: bool) -> None:
    """The short way of it has no options of its own: a step that writes with the engine's connection has an `undo` that does."""
    saga = Saga("s").step("a", H, undo=lambda: None, transactional=is_inside).build()
    undo = saga.graph.nodes["a"].compensation
    assert undo is not None
    assert undo.transactional is is_inside


@pytest.mark.row("F-007")
@pytest.mark.parametrize(
    "saga",
    [
        Saga("s").on_failure("undo", H),
        Saga("s").save_point("here").on_failure("undo", H),
        Saga("s").condition("c", "{{ .a }}").on_failure("undo", H),
        two().on_failure("undo", H),
        two().join("met").on_failure("undo", H),
    ],
)
def test_only_steps_that_do_something_can_be_undone(saga: Saga) -> None:
    """`on_failure` needs a step before it that calls somebody."""
    assert "nothing_to_undo" in {code for code, _ in findings(saga)}


@pytest.mark.row("F-007")
def test_a_step_has_one_compensation() -> None:
    """A second `on_failure` for the same step is refused."""
    saga = Saga("s").step("a", H).on_failure("undo", H).on_failure("undo again", H)
    assert findings(saga) == {("two_compensations", "a")}


@pytest.mark.row("F-008")
def test_parallel_takes_tasks_with_options() -> None:
    """`parallel` makes a step of each task, with the options of the task."""
    saga = Saga("s").parallel("both", task("a", H, attempts=5, priority=7), task("b", H)).then("c", H).build()
    assert saga.steps["both"].parallel == ("a", "b")
    assert (saga.steps["a"].max_retries, saga.steps["a"].priority) == (5, 7)
    assert (saga.steps["b"].max_retries, saga.steps["b"].priority) == (3, 0)


@pytest.mark.row("F-009")
def test_each_branch_of_a_fork_is_a_chain_of_its_own() -> None:
    """Each callback gets a builder of its own and may chain anything, in any length."""
    seen: list[Branch] = []

    def first(branch: Branch) -> None:
        seen.append(branch)
        branch.step("a", H).on_failure("undo a", H).human("ask").then("a2", H)

    def second(branch: Branch) -> None:
        seen.append(branch)
        branch.fork("inner", lambda one: one.step("x", H), lambda two: two.step("y", H)).join("met").save_point("sp")

    saga = Saga("s").fork("fork", first, second).join("end").build()
    assert seen[0] is not seen[1]
    assert saga.steps["fork"].parallel == ("a", "inner")
    assert (ways(saga)["a2"], ways(saga)["sp"]) == (("end",), ("end",))


@pytest.mark.row("F-010", "F-034")
def test_a_join_finds_out_what_it_waits_for() -> None:
    """It waits for the last step of each branch of the fork before it."""
    fork = Saga("s").fork("f", lambda one: one.step("a", H).step("a2", H), lambda two: two.step("b", H))
    assert fork.join("met").build().steps["met"].wait_for == ("a2", "b")
    parallel = Saga("s").parallel("p", task("c", H), task("d", H)).join("met", "any").build()
    assert parallel.steps["met"].wait_for == ("c", "d")


@pytest.mark.row("F-010")
def test_a_join_needs_a_fork() -> None:
    """A join that follows no fork is refused; so is a step that follows a fork without a join."""
    assert findings(Saga("s").step("a", H).join("met")) == {("join_without_fork", "met")}
    assert findings(two().then("c", H)) == {("fork_without_join", "c")}
    assert findings(two().join("met").join("again")) == {("join_without_fork", "again")}


@pytest.mark.row("F-011", "F-034")
def test_join_step_still_works_and_warns() -> None:
    """The deprecated spelling with a list of names gives the same graph as `join`."""
    with pytest.warns(DeprecationWarning, match="use join"):
        saga = two().join_step("met", ["a", "b"], "any", losers="finish").build()
    assert saga.graph == two().join("met", "any", losers="finish").build().graph
    assert saga.steps["met"].wait_for == ("a", "b")
    assert saga.steps["met"].losers == "finish"


@pytest.mark.row("F-011", "F-022")
def test_join_step_must_name_steps_that_exist() -> None:
    """A name in its list that no step has is refused."""
    with pytest.warns(DeprecationWarning, match="use join"):
        saga = two().join_step("met", ["a", "b", "nowhere"])
    assert findings(saga) == {("unknown_step", "met")}


@pytest.mark.row("F-011", "F-034")
def test_join_step_must_name_every_branch() -> None:
    """A join waits for all branches, so a list that leaves one out would be passed over in silence; it is refused."""
    with pytest.warns(DeprecationWarning, match="use join"):
        saga = two().join_step("met", ["b"])
    assert findings(saga) == {("unnamed_branch", "met")}


@pytest.mark.row("F-021")
def test_virtual_steps_are_no_unknown_steps() -> None:
    """A list may hold a condition's virtual entry, which is no step of its own."""
    saga = Saga("s").fork(
        "f",
        lambda one: one.condition("c", "{{ .a }}", lambda no: no.step("n", H)).then("y", H),
        lambda two: two.step("b", H),
    )
    with pytest.warns(DeprecationWarning, match="use join"):
        built = saga.join_step("met", ["cond#c", "b"]).build()
    assert built.steps["met"].wait_for == ("cond#c", "b")
    assert "cond#c" not in built.steps


@pytest.mark.row("F-012", "F-031", "F-032")
def test_a_condition_parts_the_way() -> None:
    """What is chained after a condition is the way of yes; its callback builds the way of no, which does not come back."""
    saga = (
        Saga("s").condition("c", "{{ gt .n 5 }}", lambda no: no.step("few", H)).then("many", H).then("end", H).build()
    )
    asked = saga.steps["c"]
    assert (asked.next, asked.otherwise, asked.condition) == (("many",), "few", "{{ gt .n 5 }}")
    assert ways(saga)["few"] == ()


@pytest.mark.row("F-012", "F-031")
@pytest.mark.parametrize("otherwise", [None, lambda branch: branch])
def test_a_condition_needs_no_way_of_no(otherwise: Any) -> None:
    """The callback may be left out, or add nothing."""
    asked = Saga("s").condition("c", "{{ .a }}", otherwise).then("yes", H).build().steps["c"]
    assert (asked.next, asked.otherwise) == (("yes",), "")


def test_a_question_may_be_asked_only_if_a_condition_holds() -> None:
    """The condition is a step of its own before it; both ways meet behind the question, and what is wrong with it is found."""
    saga = Saga("s").step("a", H).human("ask", role="r", when="n > 5").then("b", H).build()
    assert ways(saga) == {"a": ("ask?",), "ask?": ("ask",), "ask": ("b",), "b": ()}
    assert saga.steps["ask?"].otherwise == "b"
    assert findings(Saga("s").human("ask", when="n >")) == {("bad_expression", "ask")}


@pytest.mark.row("F-013", "F-014", "F-080")
def test_save_points_and_people_are_steps() -> None:
    """`save_point` and `human` stand in the chain; the seed's long name of the latter is the same."""
    saga = Saga("s").step("a", H).save_point("here").human("ask").then("b", H)
    same = Saga("s").step("a", H).save_point("here").wait_human_confirm("ask").then("b", H)
    assert ways(saga.build()) == {"a": ("here",), "here": ("ask",), "ask": ("b",), "b": ()}
    assert saga.build().graph == same.build().graph


@pytest.mark.row("F-015")
def test_the_dead_letter_mode_is_part_of_the_definition() -> None:
    """It is off unless asked for, and the compiled graph keeps it."""
    plain, patient = Saga("s").step("a", H).build(), Saga("s", dlq=True).step("a", H).build()
    assert (plain.is_dlq_enabled, patient.is_dlq_enabled) == (False, True)
    assert (plain.graph.policies.on_failure, patient.graph.policies.on_failure) == ("compensate", "dlq")


@pytest.mark.row("F-016")
def test_the_limit_of_calls_has_two_names() -> None:
    """`attempts` and `max_retries` are one option, on steps and on compensations."""
    first = Saga("s").step("a", H, attempts=4).on_failure("undo", H, attempts=2).build()
    second = Saga("s").step("a", H, max_retries=4).on_failure("undo", H, max_retries=2).build()
    assert first.graph == second.graph
    assert first.steps["a"].max_retries == 4
    undoing = first.graph.nodes["a"].compensation
    assert undoing is not None
    assert undoing.retry.max_calls == 2


@pytest.mark.row("F-016")
@pytest.mark.parametrize("add", [Saga.step, Saga.on_failure])
def test_an_option_that_does_not_exist_is_refused(add: Any) -> None:
    """A misspelt option is not passed over in silence."""
    saga = add(Saga("s").step("a", H), "b", H, retires=4)
    assert ("unknown_option", "b") in findings(saga)


def test_the_option_is_told_that_was_meant() -> None:
    """Of a step and of a question; there are so many that a list of them hides it."""
    with pytest.raises(DefinitionError, match="'attempt', which does not exist; did you mean 'attempts'"):
        Saga("s").step("a", H, attempt=3).build()  # type: ignore[call-arg]
    with pytest.raises(DefinitionError, match="'roles', which does not exist; did you mean 'role'"):
        Saga("s").human("a", roles="boss").build()  # type: ignore[call-arg]


@pytest.mark.row("F-017")
@pytest.mark.parametrize("options", [{"once": True}, {"no_idempotent": True}, {"no_idempotent": True, "attempts": 1}])
def test_what_must_not_be_repeated_is_called_once(options: Any) -> None:
    """The limit is then 1 by itself, for steps and for compensations."""
    saga = Saga("s").step("a", H, **options).on_failure("undo", H, **options).build()
    step, undoing = saga.steps["a"], saga.graph.nodes["a"].compensation
    assert (step.no_idempotent, step.max_retries) == (True, 1)
    assert undoing is not None
    assert (undoing.once, undoing.retry.max_calls) == (True, 1)


@pytest.mark.row("F-018", "F-024")
@pytest.mark.parametrize(
    "saga",
    [
        Saga("s").step("x", H).step("x", H),
        Saga("s").step("x", H).on_failure("x", H),
        Saga("s").step("a", H).on_failure("x", H).step("x", H),
        Saga("s").step("a", H).on_failure("x", H).step("b", H).on_failure("x", H),
        Saga("s").step("x", H).fork("f", lambda one: one.step("x", H), lambda two: two.step("b", H)).join("j"),
        Saga("s").fork("f", lambda one: one.step("x", H), lambda two: two.step("x", H)).join("j"),
        Saga("s").condition("c", "{{ .a }}", lambda no: no.step("x", H)).then("x", H),
        Saga("s").parallel("x", task("x", H), task("b", H)),
        Saga("s").step("x", H).save_point("x"),
    ],
)
def test_names_are_unique(saga: Saga) -> None:
    """No two steps of a definition have one name: neither in the chain, nor in branches, nor among compensations."""
    assert ("duplicate_step", "x") in findings(saga)


@pytest.mark.row("F-019")
@pytest.mark.parametrize(
    "saga",
    [
        Saga("s").step("cond#x", H),
        Saga("s").step("a", H).on_failure("cond#x", H),
        Saga("s").save_point("cond#x"),
        Saga("s").parallel("p", task("cond#x", H)),
    ],
)
def test_the_prefix_of_virtual_steps_is_reserved(saga: Saga) -> None:
    """A name may not begin with `cond#`."""
    assert findings(saga) == {("reserved_name", "cond#x")}


@pytest.mark.row("F-019")
def test_the_prefix_is_reserved_at_the_beginning_only() -> None:
    """Elsewhere in a name it means nothing."""
    assert "xcond#" in Saga("s").step("xcond#", H).build().steps


def compiled(*edges: tuple[str, str]) -> set[str]:
    """The codes of what is wrong with a saga of three steps that was made by hand."""
    nodes = [Node(id=name, op=TaskOp(work=HandlerCall(handler=H))) for name in "abc"]
    made = [Edge(source=source, target=target) for source, target in edges]
    with pytest.raises(DefinitionError) as refused:
        compile_graph(kind="saga", name="s", version="1", entry="a", nodes=nodes, edges=made, policies=Policies())
    return {each.code for each in refused.value.diagnostics}


@pytest.mark.row("F-020", "EC-01", "C-07")
def test_a_saga_does_not_go_in_circles() -> None:
    """A definition whose steps lead back is refused."""
    assert compiled(("a", "b"), ("b", "c"), ("c", "a")) == {"cycle"}
    assert compiled(("a", "b"), ("b", "c"), ("c", "c")) == {"cycle"}


@pytest.mark.row("F-020", "F-021")
def test_virtual_steps_make_no_circle() -> None:
    """A fork of conditions that meet at a join is no circle."""
    saga = (
        Saga("s")
        .fork(
            "f",
            lambda one: one.condition("c1", "{{ .a }}", lambda no: no.step("n1", H)).then("y1", H),
            lambda two: two.condition("c2", "{{ .b }}", lambda no: no.step("n2", H)).then("y2", H),
        )
        .join("met")
        .then("end", H)
        .build()
    )
    assert saga.steps["met"].wait_for == ("cond#c1", "cond#c2")


@pytest.mark.row("F-022")
def test_a_saga_has_steps() -> None:
    """An empty definition is refused, and so is an empty branch."""
    assert findings(Saga("s")) == {("empty", "")}
    empty = Saga("s").fork("f", lambda one: one.step("a", H), lambda two: two).join("j")
    assert ("empty_branch", "f") in findings(empty)


@pytest.mark.row("F-022")
def test_ways_lead_to_steps_that_exist() -> None:
    """A way to a step that does not exist is refused, and so is a step that no way leads to."""
    assert compiled(("a", "b"), ("b", "c"), ("c", "nowhere")) == {"unknown_step"}
    assert compiled(("a", "b")) == {"unreachable"}


@pytest.mark.row("F-023")
@pytest.mark.parametrize("expression", ["{{ gt .a }", "{{ gt .a }}", "{{ nonsense .a }}", "{{ .a", "a >"])
def test_a_condition_that_cannot_be_read_is_refused(expression: str) -> None:
    """A running saga never meets an expression that is not one."""
    assert findings(Saga("s").condition("c", expression).then("a", H)) == {("bad_expression", "c")}


@pytest.mark.row("F-065", "F-072", "EC-16")
@pytest.mark.parametrize("attempts", [-1, 0, 1.5, float("inf"), None, True, "3"])
def test_the_limit_of_calls_is_a_positive_number(attempts: Any) -> None:
    """There is no limit that means for ever, none below zero, and a step that may never be called is a mistake."""
    assert findings(Saga("s").step("a", H, attempts=attempts)) == {("attempts", "a")}


@pytest.mark.row("F-072")
@pytest.mark.parametrize("attempts", [-1, 1.5, float("inf"), None])
def test_the_limit_of_a_compensation_is_a_number(attempts: Any) -> None:
    """A compensation has a limit too; only 0 is allowed in addition."""
    assert findings(Saga("s").step("a", H).on_failure("undo", H, attempts=attempts)) == {("attempts", "a")}
    allowed = Saga("s").step("a", H).on_failure("undo", H, attempts=0).build()
    assert allowed.steps["a"].on_failure == "undo"


@pytest.mark.parametrize("option", ["factor", "jitter", "delay", "cap", "timeout"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), "x"])
def test_numbers_that_mean_nothing_are_named(option: str, number: Any) -> None:
    """What is no number, or no number of seconds, is refused with its value."""
    options: Any = {option: number}
    with pytest.raises((ConfigurationError, DefinitionError), match=f"is {number!r}|{number!r} is no duration"):
        Saga("s").step("a", H, **options).build()


def test_two_functions_cannot_share_a_name() -> None:
    """Handlers are found by name, so a second function with a name that is taken is refused."""

    def one() -> None: ...

    def other() -> None: ...

    other.__name__ = "one"
    assert findings(Saga("s").step("a", one).step("b", other)) == {("ambiguous_handler", "one")}
