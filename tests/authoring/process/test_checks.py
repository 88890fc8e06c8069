"""Every rule of the format: a mistake has a code, a place and a sentence, and all of them are found at once."""

from __future__ import annotations

from typing import Any

import pytest

from authoring.process.examples import ORDERS, changed, codes, found, load, text_of
from standfast import ConfigurationError, DefinitionError, load_processes
from standfast.expressions import parse
from standfast.features.process_files import expressions as formulas

WAIT = {"id": "w", "type": "wait"}
LEAD = {"from": "w", "event": "completed", "to": "approved"}


def at(data: dict[str, Any], key: str) -> list[tuple[str, str]]:
    """What is wrong, each with the text of the line that it points at."""
    lines = text_of(data).splitlines()
    told = []
    for each in found(data):
        line, column = map(int, each.position.split(":"))
        told.append((each.code, lines[line - 1][column - 1 :]))
    return [(code, rest) for code, rest in told if key in rest]


def test_the_example_is_sound() -> None:
    """What the tests change is a file with which nothing is wrong, and nothing odd."""
    assert load(ORDERS).warnings == ()


@pytest.mark.row("P-020")
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # -- the structure
        ({"id": 7}, ["wrong_type"]),
        ({"id": "  "}, ["empty"]),
        ({"id": "x" * 201}, ["too_long"]),
        ({"id": None}, ["missing_field"]),
        ({"steps": None}, ["missing_field"]),
        ({"steps": []}, ["empty"]),
        ({"steps": {}}, ["wrong_type"]),
        ({"timout": "1h"}, ["unknown_field"]),
        ({"version": True}, ["wrong_type"]),
        ({"version": 1.5}, ["wrong_type"]),
        ({"timeout": "3 days"}, ["duration"]),
        ({"timeout": 72}, ["wrong_type"]),
        ({"timeout": "1m1h"}, ["duration"]),
        ({"timeout": "999999999w"}, ["duration"]),
        ({"timeout": "0s"}, ["deadline"]),
        ({"timeout": "9999w"}, ["deadline"]),
        ({"chain_limit": 0}, ["number"]),
        ({"capabilities": "x"}, ["wrong_type"]),
        ({"capabilities__stop": "x"}, ["unknown_field"]),
        ({"steps__0": "review"}, ["wrong_type"]),
        ({"steps__0__type": "aproval"}, ["word"]),
        ({"steps__0__type": ["approval"]}, ["word"]),
        ({"steps__0__type": None}, ["missing_field"]),
        ({"steps__0__type": "aproval", "steps__0__timout": "1h"}, ["word", "unknown_field"]),
        ({"steps__0__type": "aproval", "steps__0__title": [], "steps__0__agree": "most"}, ["wrong_type", "word", "word"]),
        ({"steps__0__type": None, "steps__0__colour": "red"}, ["missing_field", "unknown_field"]),
        ({"steps__4__type": "termnal", "steps__4__id": None}, ["missing_field", "word"]),
        ({"steps__0__operation": 7, "steps__0__title": []}, ["wrong_type", "wrong_type"]),
        ({"steps__1__operation": None}, ["missing_field"]),
        ({"steps__1__operation": {"invoker": "openapi"}}, ["missing_field"]),
        ({"steps__1__operation": {"name": "x", "arguments": {"a": [1]}}}, ["wrong_type"]),
        ({"steps__1__retry": 3}, ["wrong_type"]),
        ({"steps__1__retry__attempts": 0}, ["number"]),
        ({"steps__1__retry__backoff": "exponental"}, ["word"]),
        ({"steps__1__retry__jitter": 2}, ["number"]),
        ({"steps__1__input": ["order_id"]}, ["wrong_type"]),
        ({"steps__1__input__x": {"y": 1}}, ["wrong_type"]),
        ({"steps__1__on_timeout": "expired"}, ["unknown_field"]),
        ({"steps__2__output": {}}, ["unknown_field"]),
        ({"steps__4__timeout": "1h"}, ["unknown_field"]),
        ({"transitions__0__to": None}, ["missing_field"]),
        ({"transitions__0__if": "x"}, ["unknown_field"]),
        ({"transitions__0__condition": 7}, ["wrong_type"]),
        # -- names
        ({"initial_step": "reviw"}, ["unknown_step"]),
        ({"on_timeout": "exspired"}, ["unknown_step"]),
        ({"steps__3__on_timeout": "nowhere"}, ["unknown_step"]),
        ({"transitions__0__from": "nowhere"}, ["unknown_step"]),
        ({"transitions__0__to": "nowhere"}, ["unknown_step"]),
        ({"steps__6__id": "rejected"}, ["unknown_step", "duplicate_step"]),
        ({"steps__4__id": "cond#1", "transitions__7__to": "cond#1"}, ["reserved_name"]),
        ({"steps__4__id": "#x", "transitions__7__to": "#x"}, ["reserved_name"]),
        ({"steps__1__output": {"_last_error": "response.at"}}, ["reserved_name"]),
        ({"steps__4__id": None}, ["missing_field"]),
        # -- times
        ({"timeout": None, "steps__3__timeout": None, "on_timeout": "expired"}, ["on_timeout", "on_timeout"]),
        ({"transitions__8": {"from": "pause", "event": "timeout", "to": "expired"}}, ["on_timeout"]),
        ({"timeout": None, "transitions__8": {"from": "review", "event": "timeout", "to": "expired"}}, ["event"]),
        # -- waits
        ({"steps__7": WAIT, "transitions__8": LEAD}, ["wait"]),
        ({"steps__7": {**WAIT, "event": "e", "duration": "1h"}, "transitions__8": LEAD}, ["wait"]),
        ({"steps__7": {**WAIT, "duration": "1h", "timeout": "2h"}, "transitions__8": LEAD}, ["wait"]),
        ({"steps__7": {**WAIT, "duration": "1h", "key": "workflow.x"}, "transitions__8": LEAD}, ["wait"]),
        ({"steps__7": {**WAIT, "until": "due_at"}, "transitions__8": LEAD}, ["expression"]),
        ({"steps__7": {**WAIT, "until": "workflow.x", "time_zone": "UTC"}, "transitions__8": LEAD}, ["wait"]),
        ({"steps__3": {"id": "pause", "type": "wait", "cron": "often"}, "transitions__6__event": "completed"}, ["cron"]),
        ({"steps__3": {"id": "pause", "type": "wait", "cron": "0 9 * * *", "time_zone": "Mars"}, "transitions__6__event": "completed"}, ["time_zone"]),
        ({"steps__3": {"id": "pause", "type": "wait", "events": [{"event": "a"}, {"event": "a"}]}, "transitions__6__event": "completed"}, ["duplicate_event"]),
        ({"steps__7": {**WAIT, "events": [{"event": "a", "key": "x"}]}, "transitions__8": LEAD}, ["expression"]),
        ({"steps__7": {**WAIT, "events": [{"event": "a"}], "need": "some"}, "transitions__8": LEAD}, ["word"]),
        ({"steps__3__key": "context.tenant_id"}, ["expression"]),
        ({"steps__3__condition": "event.amount >"}, ["expression"]),
        # -- people
        ({"steps__0__assignee": {}}, ["assignee"]),
        ({"steps__0__assignee": {"role": "a", "user": "b"}}, ["assignee"]),
        ({"steps__0__assignees": [{"role": "b"}]}, ["assignee"]),
        ({"steps__0__assignee": {"role": "a", "of": "b"}}, ["assignee"]),
        ({"steps__0__assignee": {"role": "a", "weight": 0}}, ["number"]),
        ({"steps__0__assignee": {"expression": "boss"}}, ["expression"]),
        ({"steps__0__chain": "large"}, ["assignee"]),
        ({"steps__0__agree": "most"}, ["word"]),
        ({"steps__0__agree": "n", "steps__0__least": 9}, ["agree"]),
        ({"steps__0__distinct_from": ["reviw"]}, ["unknown_step"]),
        ({"steps__0__form_for": ["sent"]}, ["form"]),
        ({"steps__0__input": {"a": 1}}, ["operation"]),
        ({"steps__0__retry": {}}, ["operation"]),
        ({"triggers": [{"event": "order.placed", "key": "workflow.id"}]}, ["expression"]),
        ({"triggers": [{"event": "order.placed", "condition": "event.total <"}]}, ["expression"]),
        ({"triggers": [{"event": "order.placed", "input": {"id": "order"}}]}, ["expression"]),
        # -- forms
        ({"steps__0__form": ["notes"]}, ["wrong_type"]),
        ({"steps__0__form__type": "array"}, ["form"]),
        ({"steps__0__form__properties": ["notes"]}, ["form"]),
        ({"steps__0__form__order": ["nots"]}, ["form"]),
        ({"steps__0__form__order": "notes"}, ["form"]),
        ({"steps__0__form__required": ["nots"]}, ["form"]),
        ({"steps__0__form__properties__notes__multipleOf": 0.01}, ["form"]),
        # -- transitions
        ({"transitions__8": {"from": "approved", "event": "again", "to": "review"}}, ["terminal"]),
        ({"transitions__3__event": "done"}, ["event"]),
        ({"transitions__5__to": "review"}, ["event"]),
        ({"transitions__5__condition": "workflow.x == 1"}, ["event"]),
        ({"transitions__7__event": "error"}, ["event"]),
        ({"transitions__6__event": "payed"}, ["event"]),
        ({"transitions__2__event": "*"}, ["event"]),
        ({"transitions__8": {"from": "review", "event": "error", "to": "rejected"}}, ["event"]),
        ({"transitions__0__event": "timeout", "transitions__1__event": "timeout", "transitions__2__event": "timeout"}, ["no_transition"]),
        ({"transitions": []}, ["no_transition"]),
        ({"transitions": [], "timeout": None, "on_timeout": None}, ["no_terminal", "no_transition"]),
        # -- expressions
        ({"transitions__0__condition": "workflow.total <"}, ["expression"]),
        ({"transitions__0__condition": "total < 100"}, ["expression"]),
        ({"transitions__0__condition": "'yes'"}, ["expression"]),
        ({"transitions__0__condition": {"field": "workflow.total", "operator": "lttt", "value": 1}}, ["expression"]),
        ({"transitions__0__condition": "context.tenant == 'a'"}, ["expression"]),
        ({"steps__1__input__order_id": "order_id"}, ["expression"]),
        ({"steps__1__input__order_id": "response.id"}, ["expression"]),
        ({"steps__1__output__confirmed_at": "input.at"}, ["expression"]),
    ],
)  # fmt: skip
def test_a_mistake_is_found(changes: dict[str, Any], expected: list[str]) -> None:
    """Each rule has a code, and nothing else is said to be wrong."""
    assert sorted(codes(changed(**changes))) == sorted(expected)


@pytest.mark.parametrize(
    ("changes", "code", "points_at"),
    [
        ({"steps__0__type": "aproval"}, "word", '"aproval"'),
        ({"timout": "1h"}, "unknown_field", '"timout"'),
        ({"steps__1__operation": None}, "missing_field", "{"),
        ({"transitions__0__to": "nowhere"}, "unknown_step", '"nowhere"'),
        ({"steps__1__input__order_id": "order_id"}, "expression", '"order_id": "order_id"'),
        ({"steps__0__form__order": ["nots"]}, "form", '"order"'),
        ({"steps__0__form__properties__notes__multipleOf": 0.01}, "form", "{"),
        ({"steps__0__form__properties__notes__pattern": "^(?=a)"}, "form", '"^(?=a)"'),
        ({"transitions__0__condition": "workflow.total <"}, "expression", '"workflow.total <"'),
        ({"timeout": "0s"}, "deadline", "{"),
    ],
)
def test_a_mistake_is_found_where_it_stands(changes: dict[str, Any], code: str, points_at: str) -> None:
    """The line and the column are those of the value, or of the name where that is what is wrong."""
    ((first, rest), *_) = at(changed(**changes), points_at)
    assert first == code
    assert rest.startswith(points_at)


def test_all_mistakes_of_a_file_are_found_at_once_in_their_order() -> None:
    """What is wrong with one part hides nothing of the others, in this workflow and in the next."""
    wrong = changed(
        timeout="soon",
        steps__0__type="aproval",
        steps__1__input__order_id="order_id",
        transitions__1__guard=7,
        transitions__2__to="nowhere",
    )
    wrong["workflows"].append(changed(id="other", on_timeout="never")["workflows"][0])
    assert codes(wrong) == ["duration", "word", "expression", "wrong_type", "unknown_step", "unknown_step"]
    positions = [[int(part) for part in each.position.split(":")] for each in found(wrong)]
    assert positions == sorted(positions)


def test_a_step_that_cannot_be_read_is_still_a_step() -> None:
    """Transitions to it are not said to lead nowhere, and nothing is said about ways that may be its."""
    assert codes(changed(steps__4__type="terminl", steps__5__type="x", steps__6__type="y")) == ["word"] * 3


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"steps__0__type": "aproval"}, "did you mean 'approval'"),
        ({"timout": "1h"}, "did you mean 'timeout'"),
        ({"transitions__0__to": "proces"}, "did you mean 'process'"),
        ({"transitions__3__event": "complete"}, "did you mean 'completed'"),
        ({"steps__0__form__order": ["note"]}, "did you mean 'notes'"),
        ({"steps__1__input__order_id": "workflw.id"}, "did you mean 'workflow'"),
        ({"steps__1__operation": None}, "no `operation`; give it"),
        ({"id": 7}, "quote it"),
        ({"timeout": "3 days"}, "such as 24h, 5m or 1h30m"),
        ({"steps__0__assignee": {}}, "and this one has none of them; give one"),
        ({"steps__0__assignee": {"role": "a", "user": "b"}}, "and this one has several of them; leave one"),
        ({"steps__1__retry__attempts": 0}, "it must be from 1 to 1000000"),
        ({"steps__1__retry__jitter": 2}, "it must be from 0 to 1"),
    ],
)
def test_a_finding_says_what_to_do(changes: dict[str, Any], told: str) -> None:
    """A misspelt word gets the one that was probably meant, everything else a remedy."""
    assert any(told in each.message for each in found(changed(**changes)))


@pytest.mark.row("C-06")
@pytest.mark.parametrize("word", ["cancelled", "step_entered", "step_failed", "workflow_completed", "workflow_failed"])
def test_an_answer_does_not_bear_a_word_of_the_trail(word: str) -> None:
    """What a person decides is told by its own name, so it cannot be called what the trail calls its own entries; other words stay as they are."""
    way = {"from": "review", "event": word, "to": "rejected"}
    assert codes(changed(transitions__8=way)) == ["event"]
    assert codes(changed(transitions__8={**way, "event": "cancelled_by_customer"})) == []


def test_a_workflow_is_there_once() -> None:
    """Two of the same id and version are refused; two versions are not."""
    other = changed()["workflows"][0]
    assert codes({**ORDERS, "workflows": [*ORDERS["workflows"], other]}) == ["duplicate_workflow"]
    both = load_processes(text_of({**ORDERS, "workflows": [*ORDERS["workflows"], {**other, "version": "2"}]}))
    assert [each.id for each in both] == ["orders.approval-v1", "orders.approval-v2"]


def test_the_error_names_the_file() -> None:
    """Whoever loads many files knows which one is meant."""
    with pytest.raises(DefinitionError, match=r"orders\.yaml cannot be compiled"):
        load_processes("a: 1", name="orders.yaml")


def test_processes_are_text() -> None:
    """Anything else is told what to give."""
    with pytest.raises(ConfigurationError, match="as YAML or JSON"):
        load_processes({"domain": "x"})  # type: ignore[arg-type]


def test_a_definition_keeps_what_its_author_wrote() -> None:
    """The file if the workflow is alone in it, and a file of its own otherwise, which makes the same graph."""
    text = text_of(ORDERS)
    (alone,) = load_processes(text)
    assert (alone.source, alone.media_type) == (text.encode(), "application/json")
    other = changed(id="other")["workflows"][0]
    first, second = load_processes(text_of({**ORDERS, "workflows": [*ORDERS["workflows"], other]}))
    assert load_processes(first.source)[0].graph.hash == first.graph.hash == alone.graph.hash
    assert load_processes(second.source)[0].graph.hash == second.graph.hash


def conditions(*texts: str) -> dict[str, Any]:
    """A process whose ways have these conditions."""
    ways = [{"from": "a", "event": "sent", "to": "b", "condition": each} for each in texts]
    steps = [{"id": "a", "type": "action"}, {"id": "b", "type": "terminal"}]
    return {"domain": "d", "workflows": [{"id": "w", "steps": steps, "transitions": ways}]}


def test_the_expressions_of_a_file_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer to read than all else: those beyond are not read, and the first of them is told; what comes again counts once."""
    texts = [f"workflow.n > {number}" for number in range(5)]
    monkeypatch.setattr(formulas, "MOST", sum(len(each) + formulas.EACH for each in texts))
    assert codes(conditions(*texts, *texts)) == []
    (finding,) = found(conditions(*texts, "workflow.n > 5", "workflow.n >"))
    assert finding.code == "too_many_expressions"
    assert (
        text_of(conditions(*texts, "workflow.n > 5")).splitlines()[int(finding.position.split(":")[0]) - 1].count("> 5")
    )


def test_an_expression_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the checks have read the compiler has, and so has the next step that says the same."""
    read: list[str] = []

    def noted(source: str, **options: Any) -> object:
        read.append(source)
        return parse(source, **options)

    monkeypatch.setattr(formulas, "parse", noted)
    texts = ["workflow.never_read_before > 1", "workflow.never_read_before > 2"]
    load(conditions(*texts, texts[0]))
    assert read == texts


SEVERAL = """
domain: d
workflows:
  - id: p
    initial_step: rveiew
    steps: [{id: review, type: action}, {id: x, type: terminal}]
    transitions: [{from: review, event: go, to: x}]
  - id: q
    capabilities: {start: []}
    steps: [{id: tell, type: notification, operation: mail, input: {text: Your order is done}}, {id: x, type: terminal}]
    transitions: [{from: tell, event: completed, to: x}]
  - id: r
    capabilities: {start: []}
    steps: [{id: review, type: action}, {id: x, type: terminal}]
    transitions: [{from: review, event: go, to: x}]
"""


def test_what_the_graph_finds_is_said_with_all_the_rest() -> None:
    """A mistake in one workflow of a file does not hide what only the graph of another one shows."""
    with pytest.raises(DefinitionError) as wrong:
        load_processes(SEVERAL)
    assert [each.code for each in wrong.value.diagnostics] == ["unknown_step", "expression", "capability"]


def test_a_misspelt_beginning_is_said_once() -> None:
    """That nothing is reached from a step that is none, follows from it."""
    with pytest.raises(DefinitionError) as wrong:
        load_processes(SEVERAL.partition("  - id: q")[0])
    assert [(each.code, "did you mean 'review'" in each.message) for each in wrong.value.diagnostics] == [
        ("unknown_step", True)
    ]


def test_words_where_an_expression_stands_are_to_be_quoted() -> None:
    """Whoever writes a text into `input` is told how it is written."""
    with pytest.raises(DefinitionError, match="quote it inside the expression: \"'Your order is done'\""):
        load_processes(SEVERAL)


@pytest.mark.parametrize(
    ("written", "is_told"),
    [
        ("Your order is done", True),
        ("a +", False),
        ("f(", False),
        ("x > > y", False),
        ("nothing known to", True),
        ("[a, b", False),
    ],
)
def test_only_words_are_to_be_quoted(written: str, is_told: bool) -> None:  # noqa: FBT001 - a column of the table
    """An expression that is wrong and looks like no sentence is not called a text."""
    with pytest.raises(DefinitionError) as wrong:
        load_processes(SEVERAL.replace("Your order is done", written))
    assert any("quote it inside the expression" in each.message for each in wrong.value.diagnostics) == is_told
