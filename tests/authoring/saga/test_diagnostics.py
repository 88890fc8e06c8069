"""What `build` says about mistakes: the finding names the culprit and a remedy that the author of a saga has."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from standfast import (
    Branch,
    ConfigurationError,
    DefinitionError,
    Diagnostic,
    Escalation,
    Saga,
    handler,
    task,
)

H = "work"
"""A handler by its name; nobody calls it here."""


def findings(saga: Saga) -> list[Diagnostic]:
    """All that `build` finds."""
    with pytest.raises(DefinitionError) as refused:
        saga.build()
    return list(refused.value.diagnostics)


def codes(saga: Saga) -> list[tuple[str, str]]:
    """Codes and places of all that `build` finds."""
    return [(each.code, each.position) for each in findings(saga)]


def pair(branch: Branch, name: str = "inner") -> Branch:
    """A fork that has no join."""
    return branch.fork(name, lambda one: one.step(f"{name} 1", H), lambda two: two.step(f"{name} 2", H))


@pytest.mark.row("F-022")
@pytest.mark.parametrize(
    "saga",
    [
        Saga("s").parallel("p", task("", H), task("b", H)),
        Saga("s").fork("f", lambda one: one.step("", H), lambda two: two.step("b", H)).join("j"),
        Saga("s").step("", H),
    ],
)
def test_a_step_without_a_name_is_told_from_a_branch_without_steps(saga: Saga) -> None:
    """The finding is about the name, wherever the step stands."""
    assert codes(saga) == [("unnamed_step", "")]


@pytest.mark.row("F-134")
@pytest.mark.parametrize(
    "first",
    [
        pair,
        lambda branch: branch.step("a", H, on_error=pair),
        lambda branch: branch.condition("c", "x > 1", pair).step("a", H),
        lambda branch: branch.human("ask", on_rejected=pair),
    ],
)
def test_a_fork_inside_a_branch_needs_a_join_where_the_branch_does(first: Any) -> None:
    """The finding names the inner fork and what to put behind it, not the rule of the machine that it breaks."""
    saga = Saga("s").fork("outer", first, lambda two: two.step("b", H)).join("j")
    (finding,) = findings(saga)
    assert (finding.code, finding.position) == ("fork_without_join", "inner")
    assert "put a join behind 'inner'" in finding.message


@pytest.mark.row("F-134")
def test_every_fork_on_the_way_to_a_join_is_named() -> None:
    """Forks within forks are found at once, those in the body of a list too; a list closes its branches by itself."""
    deep = Saga("s").fork("outer", lambda one: one.fork("middle", pair), lambda two: two.step("b", H)).join("j")
    assert codes(deep) == [("fork_without_join", "middle"), ("fork_without_join", "inner")]
    assert codes(Saga("s").for_each("rows", "input.rows", pair)) == [("fork_without_join", "inner")]


@pytest.mark.row("F-134")
def test_branches_that_never_meet_need_no_joins() -> None:
    """Forks within forks just run to their ends where nothing follows."""
    forked = Saga("s").fork("outer", pair, lambda two: two.step("b", H)).build()
    detour = Saga("s").step("a", H, on_error=pair).step("b", H).build()
    for saga in (forked, detour):
        assert saga.steps["inner"].type == "fork"
        assert "join" not in {step.type for step in saga.steps.values()}


@pytest.mark.parametrize(
    "saga",
    [
        lambda wrong: Saga("s").fork("f", wrong, lambda two: two.step("b", H)).join("j"),
        lambda wrong: Saga("s").step("f", H, on_error=wrong),
        lambda wrong: Saga("s").condition("f", "x > 1", wrong),
        lambda wrong: Saga("s").human("f", on_rejected=wrong),
        lambda wrong: Saga("s").wait_for("f", "x", timeout=1, on_timeout=wrong),
        lambda wrong: Saga("s").for_each("f", "input.rows", wrong),
    ],
)
@pytest.mark.parametrize("wrong", [Saga("other").step("a", H), "x", lambda: None])
def test_what_cannot_build_a_branch_is_a_finding(saga: Any, wrong: object) -> None:
    """A way is built by a function of one argument; anything else is told by `build`, not by a bare TypeError."""
    assert codes(saga(wrong)) == [("branch", "f")]


@pytest.mark.parametrize(
    ("saga", "code"),
    [
        (lambda: Saga("s").parallel("p", "x"), "task"),  # type: ignore[arg-type]
        (lambda: Saga("s", dlq="no").step("a", H), "dlq"),  # type: ignore[arg-type]
        (lambda: Saga("s").step("a", H, factor="x"), "retry_factor"),  # type: ignore[arg-type]
        (lambda: Saga("s").step("a", H, factor=float("nan")), "retry_factor"),
        (lambda: Saga("s").step("a", H, jitter=None), "retry_jitter"),  # type: ignore[arg-type]
        (lambda: pair(Saga("s")).join("j", []), "join_strategy"),  # type: ignore[arg-type]
        (lambda: pair(Saga("s")).join("j", True), "join_strategy"),
        (lambda: Saga("s").condition("c", "x > 1", spelling="latin"), "bad_expression"),  # type: ignore[arg-type]
        (lambda: Saga("s").step("a", H).on_failure(None, H), "step_name"),  # type: ignore[arg-type]
    ],
)
def test_values_of_the_wrong_kind_are_findings(saga: Any, code: str) -> None:
    """No mistake in an argument is taken as something else or ends in an error of Python's own."""
    assert [each.code for each in findings(saga())] == [code]


@pytest.mark.row("F-016")
@pytest.mark.parametrize(
    "options",
    [{"attempts": 2, "max_retries": 7}, {"attempts": 2, "max_retries": 2}, {"once": True, "no_idempotent": True}],
)
def test_an_option_is_given_once(options: Any) -> None:
    """Two names of one option at once are a finding, on steps and on compensations."""
    assert codes(Saga("s").step("a", H, **options)) == [("same_option", "a")]
    assert codes(Saga("s").step("a", H).on_failure("undo", H, **options)) == [("same_option", "undo")]


@pytest.mark.row("F-017")
@pytest.mark.parametrize("name", ["once", "no_idempotent"])
def test_once_and_more_calls_contradict_one_another(name: str) -> None:
    """The limit of what must not be repeated is 1; whoever asks for more is told at `build`."""
    options: Any = {name: True, "attempts": 5}
    assert codes(Saga("s").step("a", H, **options)) == [("once", "a")]
    assert codes(Saga("s").step("a", H).on_failure("undo", H, **options)) == [("once", "a")]


def long_branch() -> Saga:
    """A fork with a branch of two steps and one of one."""
    return Saga("s").fork("f", lambda one: one.step("a1", H).step("a2", H), lambda two: two.step("b1", H))


@pytest.mark.row("F-011", "F-034")
def test_join_step_waits_for_what_it_names() -> None:
    """The list is kept as it was given: each name is the last step of its branch."""
    with pytest.warns(DeprecationWarning, match="use join"):
        saga = long_branch().join_step("j", ["b1", "a2"]).build()
    assert saga.steps["j"].wait_for == ("b1", "a2")


@pytest.mark.row("F-011", "F-034")
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a1", "b1"], "name 'a2'"),
        (["a1", "a2", "b1"], "name 'a2'"),
        (["start", "a2", "b1"], "'start' is in no branch of 'f'"),
        (["cond#start", "a2", "b1"], "'cond#start' is in no branch of 'f'"),
    ],
)
def test_join_step_cannot_wait_for_less_than_a_branch(names: list[str], said: str) -> None:
    """A join waits for whole branches, so a name that is not the last of one would be passed over in silence."""
    saga = (
        Saga("s").step("start", H).fork("f", lambda one: one.step("a1", H).step("a2", H), lambda two: two.step("b1", H))
    )
    with pytest.warns(DeprecationWarning, match="use join"):
        saga.join_step("j", names)
    (finding,) = findings(saga)
    assert (finding.code, finding.position) == ("not_last", "j")
    assert said in finding.message


@pytest.mark.row("F-011", "F-021")
def test_join_step_may_name_the_ways_of_a_condition() -> None:
    """A branch that parts has several last steps, and the condition's virtual entry stands for them; a list for its join."""

    def parting(branch: Branch) -> None:
        branch.condition("c", "x > 1", lambda no: no.step("n", H)).step("y", H)

    def listing(branch: Branch) -> None:
        branch.for_each("rows", "input.rows", lambda row: row.step("r", H))

    for names in (["y", "n", "rows"], ["cond#c", "rows"]):
        with pytest.warns(DeprecationWarning, match="use join"):
            saga = Saga("s").fork("f", parting, listing).join_step("j", names).build()
        assert saga.steps["j"].wait_for == tuple(names)


@pytest.mark.row("F-011")
@pytest.mark.parametrize("names", ["ab", None, [1]])
def test_the_list_of_join_step_is_a_list_of_names(names: Any) -> None:
    """A text is not a list of its letters."""
    saga = Saga("s").fork("f", lambda one: one.step("a", H), lambda two: two.step("b", H))
    with pytest.warns(DeprecationWarning, match="use join"):
        saga.join_step("j", names)
    assert codes(saga) == [("step_name", "j")]


@pytest.mark.row("F-197")
@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ('{{ eq .actor "bob" }}', "actor"),
        ("actor == 'bob'", "actor"),
        ({"field": "actor.name", "operator": "eq", "value": "bob"}, "actor"),
        ("now == 'morning'", "now"),
        ("instance_id > 5", "instance_id"),
        ("step_name", "step_name"),
        ("input > 5", "input"),
    ],
)
def test_fields_that_share_a_name_with_the_context_are_hinted_at(condition: Any, name: str) -> None:
    """A condition that reads the context as if it were a field of that name can never hold; the finding says how to read the field."""
    (finding,) = findings(Saga("s").condition("c", condition).step("a", H))
    assert (finding.code, finding.position) == ("bad_expression", "c")
    assert f"input.{name}" in finding.message


@pytest.mark.row("F-197")
@pytest.mark.parametrize(
    "condition",
    [
        "actor.id == 'bob'",
        "input.actor == 'bob'",
        '{{ eq .input.actor "bob" }}',
        "now > '2030-01-01T00:00:00Z'",
        "input.due < now",
        "step_name == 'c' && instance_id != ''",
        "anything > 5",
    ],
)
def test_the_context_can_be_read(condition: str) -> None:
    """What the context has may be compared with values of its own type, and fields with anything."""
    saga = Saga("s").condition("c", condition).step("a", H)
    assert saga.build().steps["c"].condition == condition


def test_functions_without_a_name_belong_to_the_version_of_their_saga() -> None:
    """A lambda is called by the id of its saga and its step, so that two versions of a saga can stand side by side."""
    sagas = [Saga("kid", version).step("k", lambda: None).on_failure("undo", lambda: None) for version in (1, 2)]
    assert [set(saga.build().handlers) for saga in sagas] == [{"kid-v1.k", "kid-v1.undo"}, {"kid-v2.k", "kid-v2.undo"}]


def test_what_cannot_bear_a_name_is_told_how_to_get_one() -> None:
    """A bound method takes no mark; the error names the other way."""
    with pytest.raises(ConfigurationError, match=r"engine\.handle\('mine', …\)"):
        handler("mine")([].append)


@pytest.mark.parametrize("subject", ["Pay {amount", "Pay {}?", "Pay {a b}?", "Pay {__x}?"])
def test_a_subject_that_cannot_be_filled_in_is_a_finding(subject: str) -> None:
    """Braces in a question stand for values of the data; those that do not are told when the saga is built."""
    assert codes(Saga("s").human("ask", subject=subject)) == [("bad_expression", "ask")]


@pytest.mark.parametrize("shows", [["a b"], ["1"], "amount", [5], ["x > 1"]])
def test_what_a_question_shows_is_a_list_of_paths(shows: Any) -> None:
    """A text is not a list of its letters, and a path is nothing but a path."""
    assert codes(Saga("s").human("ask", shows=shows)) == [("bad_expression", "ask")]


def test_a_word_for_a_rejection_that_does_not_exist_is_a_finding() -> None:
    """The finding names the words that there are."""
    (finding,) = findings(Saga("s").human("ask", on_rejected="undo"))  # type: ignore[arg-type]
    assert (finding.code, finding.position) == ("branch", "ask")
    assert "'fail'" in finding.message


@pytest.mark.parametrize("depth", [65, 300, 3000])
def test_ways_that_are_nested_too_deep_are_a_finding(depth: int) -> None:
    """However deep forks or other ways lie inside of one another, the author is told where they go too far, and no stack ends."""

    def forked(way: Branch, level: int = 1) -> Branch:
        inner = (lambda each: forked(each, level + 1)) if level < depth else (lambda each: each.step("last", H))
        return way.fork(f"f{level}", inner).join(f"j{level}")

    def otherwise(way: Branch, level: int = 1) -> Branch:
        inner = (lambda each: otherwise(each, level + 1)) if level < depth else (lambda each: each.step("last", H))
        return way.condition(f"c{level}", "x > 1", inner).step(f"s{level}", H)

    for build, name in ((forked, "f65"), (otherwise, "c65")):
        saga = Saga("deep")
        build(saga)
        found = findings(saga)
        assert ("nested", name) in [(each.code, each.position) for each in found]
        assert "nested deeper than 64" in str(found[0])


def test_ways_may_be_nested_as_deep_as_people_write_them() -> None:
    """Sixty-four levels of forks are built and compiled."""

    def forked(way: Branch, level: int = 1) -> Branch:
        inner = (lambda each: forked(each, level + 1)) if level < 64 else (lambda each: each.step("last", H))
        return way.fork(f"f{level}", inner).join(f"j{level}")

    saga = Saga("deep")
    forked(saga)
    assert len(saga.build().graph.nodes) == 129


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("role:boss", "'sign' escalates by 'role:boss'; give Escalation"),
        ([Escalation(after=timedelta(hours=1), to="role:boss"), 7], "'sign' escalates by 7"),
        (Escalation(after=timedelta(hours=1), to="manager:ann"), "nobody is looked up then"),
    ],
)
def test_what_is_no_escalation_is_a_finding(given: Any, told: str) -> None:
    """The finding is the only one, and shows how a rung is written."""
    (found,) = findings(Saga("s").human("sign", role="clerk", escalate=given))
    assert (found.code, found.position) == ("escalate", "sign")
    assert told in found.message
