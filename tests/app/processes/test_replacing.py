"""A tenant's process in the place of a shared one: it may ask for more, and never for less, whatever its steps are called."""

from __future__ import annotations

import pytest

from standfast import DefinitionError, Saga, load_processes
from standfast.graph.compiler import graph_bytes
from support.engines import Place

SHARED = """
domain: pay
workflows:
  - id: pay
    version: 1
    replaceable: true
    steps:
      - {id: first, type: approval, assignee: {role: clerk}}
      - {id: review, type: approval, assignee: {role: boss}, capability: pay:approve, self_approval: false, distinct_from: [first], timeout: 2d, on_timeout: late}
      - {id: send, type: system, operation: pay.send}
      - {id: paid, type: terminal, outcome: paid}
      - {id: refused, type: terminal, outcome: refused}
      - {id: late, type: terminal, outcome: late}
    transitions:
      - {from: first, event: approved, to: review}
      - {from: first, event: rejected, to: refused}
      - {from: review, event: approved, to: send, condition: workflow.total < 100}
      - {from: review, event: approved, to: send, guard: large}
      - {from: review, event: rejected, to: refused}
      - {from: send, event: completed, to: paid}
      - {from: send, event: retry, to: send, guard: again}
"""
SMALL = "      - {from: review, event: approved, to: send, condition: workflow.total < 100}\n"
LARGE = "      - {from: review, event: approved, to: send, guard: large}\n"
RENAMED = (("id: review", "id: look"), ("from: review", "from: look"), ("to: review", "to: look"))
Edit = tuple[str, str]
FEWER: dict[str, list[Edit]] = {
    "no guard": [(", guard: large", "")],
    "another guard": [("guard: large", "guard: small")],
    "a wider condition": [("< 100", "< 1000000")],
    "a way without the guard": [(LARGE, LARGE.replace("guard: large", "condition: workflow.total < 7") + LARGE)],
    "the guarded way last": [(LARGE, LARGE.replace(", guard: large", "") + LARGE)],
    "self-approval": [("self_approval: false, ", "")],
    "the same person twice": [("distinct_from: [first], ", "")],
    "no capability": [("capability: pay:approve, ", "")],
    "no guard for a retry": [(", guard: again", "")],
    "renamed, no capability": [*RENAMED, ("capability: pay:approve, ", "")],
    "renamed, self-approval": [*RENAMED, ("self_approval: false, ", "")],
    "renamed, the same person twice": [*RENAMED, ("distinct_from: [first], ", "")],
    "a way around": [("to: review}", "to: send}")],
    "another way to the handler": [
        ("event: rejected, to: refused}\n      - {from: review", "event: rejected, to: other}\n      - {from: review"),
        ("      - {id: paid", "      - {id: other, type: system, operation: pay.send}\n      - {id: paid"),
        (
            "      - {from: send, event: completed",
            "      - {from: other, event: completed, to: refused}\n      - {from: send, event: completed",
        ),
    ],
    "in time": [("on_timeout: late", "on_timeout: send")],
    "another way to the end": [("from: first, event: rejected, to: refused", "from: first, event: rejected, to: paid")],
}
AS_MUCH: dict[str, list[Edit]] = {
    "the same": [],
    "renamed": [*RENAMED],
    "one more guard": [("condition: workflow.total < 100", "condition: workflow.total < 100, guard: large")],
    "only small ones": [(LARGE, "")],
    "only large ones": [(SMALL, "")],
    "one more question": [
        ("event: approved, to: review", "event: approved, to: second"),
        ("      - {id: review", "      - {id: second, type: approval, assignee: {role: lead}}\n      - {id: review"),
        ("      - {from: review, event: rejected", "      - {from: second, event: approved, to: review}\n      - {from: second, event: rejected, to: refused}\n      - {from: review, event: rejected"),
    ],
    "no handler": [("operation: pay.send", "operation: pay.other")],
    "four eyes everywhere": [("role: clerk}}", "role: clerk}, self_approval: false}")],
}  # fmt: skip


def edited(edits: list[Edit]) -> str:
    """Another version of the process."""
    text = SHARED.replace("version: 1", "version: 2").replace("    replaceable: true\n", "")
    for one, other in edits:
        assert one in text, one
        text = text.replace(one, other)
    return text


@pytest.mark.parametrize("edits", FEWER.values(), ids=FEWER)
def test_a_tenants_process_asks_for_no_less_than_the_shared_one(place: Place, edits: list[Edit]) -> None:
    """Guards by step and event, four eyes and capabilities stay; what the shared process reaches only behind them, the tenant's reaches only behind them. The check says what publishing says."""
    engine, text = place.engine(), edited(edits)
    engine.register(load_processes(SHARED)[0])
    calls = engine.as_tenant("acme").definitions
    (told,) = calls.publish_file(text, check=True).workflows
    assert (told.what, "the shared workflow 'pay'" in told.why) == ("refused", True)
    found = calls.validate_file(text)
    assert (found.is_valid, {each.code for each in found.findings}) == (False, {"fewer_rights"})
    with pytest.raises(DefinitionError, match="fewer_rights") as refused:
        calls.publish_file(text)
    assert told.why == "; ".join(each.message for each in refused.value.diagnostics)
    assert [each.version for each in calls.list()] == ["1"]


@pytest.mark.parametrize("edits", AS_MUCH.values(), ids=AS_MUCH)
def test_a_tenants_process_may_ask_for_more(place: Place, edits: list[Edit]) -> None:
    """Steps may have other names, and there may be more guards, more questions and fewer ways."""
    engine, text = place.engine(), edited(edits)
    engine.register(load_processes(SHARED)[0])
    calls = engine.as_tenant("acme").definitions
    assert [each.what for each in calls.publish_file(text, check=True).workflows] == ["new version"]
    assert calls.publish_file(text).is_published


def test_the_check_of_a_file_says_what_publishing_it_says(place: Place) -> None:
    """Whatever refuses a file when it is published, the check tells before: a shared name, another content under a version, a workflow that is not there."""
    engine = place.engine()
    engine.register(load_processes(SHARED.replace("    replaceable: true\n", ""))[0])
    calls = engine.as_tenant("acme").definitions
    files = {
        "shared_name": edited([]),
        "already_published": SHARED.replace("large", "larger"),
        "unknown_workflow": graph_bytes(Saga("w").call("c", "gone").build().graph).decode(),
    }
    for code, text in files.items():
        assert [each.what for each in calls.publish_file(text, check=True).workflows] == ["refused"], code
        with pytest.raises(DefinitionError, match=code):
            calls.publish_file(text)
