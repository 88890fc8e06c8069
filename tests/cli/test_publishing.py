"""`standfast publish`, `diff` and `definitions`, on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Standfast
from cli.flows import ORDERS, REFUNDS, RULES
from standfast.cli.exit_codes import Exit
from support.engines import Live

SECOND = ORDERS.replace("version: 1", "version: 2").replace("timeout: 2d", "timeout: 3d")


def written(text: str, name: str = "orders.yaml") -> str:
    """The name of a file with this text."""
    Path(name).write_text(text, encoding="utf-8")
    return name


def listed(standfast: Standfast, *options: str) -> list[tuple[str, str, str]]:
    """What is published: name, version and tenant."""
    items = standfast.json("definitions", "list", *options)["items"]
    assert isinstance(items, list)
    return [(each["name"], each["version"], each["tenant"]) for each in items]


def test_a_file_is_published_whole(based: Standfast) -> None:
    """Every workflow of it, for all tenants; again it changes nothing."""
    result = based("publish", written(ORDERS + REFUNDS))
    assert [line.split()[:3] for line in result.stdout.splitlines()[1:]] == [
        ["orders.approval", "1", "published"],
        ["refunds", "3", "published"],
    ]
    assert listed(based) == [("orders.approval", "1", "*"), ("refunds", "3", "*")]
    again = based.json("publish", "orders.yaml")
    assert [each["what"] for each in _workflows(again)] == ["unchanged", "unchanged"]


def _workflows(told: dict[str, object]) -> list[dict[str, object]]:
    found = told["workflows"]
    assert isinstance(found, list)
    return found


ODD = ORDERS.replace("      - {from: confirm, event: completed, to: approved}\n", "")


def test_what_is_odd_about_a_file_is_told_when_it_is_published(based: Standfast) -> None:
    """Warnings are told as `validate` tells them, on standard error; a program finds them in the answer. They refuse nothing."""
    told = [line for line in based("validate", written(ODD)).stdout.splitlines() if ": warning: " in line]
    assert len(told) == 3
    for words in (("publish", "orders.yaml", "--check"), ("publish", "orders.yaml")):
        assert based(*words).stderr.splitlines() == told
    found = based.json("publish", "orders.yaml")["warnings"]
    assert isinstance(found, list)
    assert [f"orders.yaml:{each['position']}: warning: {each['message']} [{each['code']}]" for each in found] == told


def test_a_tenant_has_workflows_of_its_own(based: Standfast) -> None:
    """What is published for a tenant is that tenant's alone."""
    based("publish", written(ORDERS), "--tenant", "acme")
    assert listed(based, "--tenant", "acme") == [("orders.approval", "1", "acme")]
    assert listed(based) == []


def test_another_content_under_a_published_version_is_refused(based: Standfast) -> None:
    """Exit code 1, nothing of the file is published, and the next step is told."""
    based("publish", written(ORDERS))
    result = based("publish", written(ORDERS.replace("timeout: 2d", "timeout: 3d") + REFUNDS), code=Exit.NO)
    assert "version 1 was published with another content" in result.stdout
    assert "nothing was published\n  → give what was changed another version" in result.stderr
    assert listed(based) == [("orders.approval", "1", "*")]
    assert based.json("publish", "orders.yaml", code=Exit.NO)["is_published"] is False


def test_a_check_tells_what_would_happen_to_live_runs(based: Standfast, live: Live) -> None:
    """New, unchanged or refused, and how many runs of each version are alive; and nothing is done."""
    assert [each["what"] for each in _workflows(based.json("publish", written(ORDERS), "--check"))] == ["new"]
    assert listed(based) == []
    based("publish", "orders.yaml")
    engine = live.engine()
    for _ in range(2):
        engine.processes.start("orders.approval", {}, patience=0)
    ended = engine.processes.start("orders.approval", {}, patience=0)
    engine.processes.cancel(ended.id)
    (told,) = _workflows(based.json("publish", written(SECOND), "--check"))
    assert (told["what"], told["live"]) == ("new version", [{"version": "1", "runs": 2, "is_counted_out": True}])
    assert "live ones stay with their version" in str(told["why"])
    assert "2 of version 1" in based("publish", "orders.yaml").stdout
    engine.processes.start("orders.approval", {}, version="2", patience=0)
    (older,) = _workflows(based.json("publish", written(ORDERS.replace("version: 1", 'version: "1.5"')), "--check"))
    assert "new runs still take 2" in str(older["why"])
    assert older["live"] == [
        {"version": "1", "runs": 2, "is_counted_out": True},
        {"version": "2", "runs": 1, "is_counted_out": True},
    ]


def test_more_live_runs_than_are_counted_are_told_so(
    based: Standfast, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting has a bound."""
    monkeypatch.setattr("standfast.features.definitions.files._COUNTED", 2)
    monkeypatch.setattr("standfast.features.definitions.files._PAGE", 1)
    based("publish", written(ORDERS))
    engine = live.engine()
    for _ in range(3):
        engine.processes.start("orders.approval", {}, patience=0)
    assert "2 or more of version 1" in based("publish", "orders.yaml", "--check").stdout


def test_who_changed_a_title_alone_is_told_that_it_was_not_taken(based: Standfast) -> None:
    """A published version never changes, not even in what it is called: that is said in words, with what to do, and `diff` shows what is another."""
    titled = ORDERS.replace("version: 1", "version: 1\n    title: Orders\n    description: Who may buy")
    based("publish", written(titled))
    other = titled.replace("Orders", "Purchases")
    for words in (("publish", written(other), "--check"), ("publish", "orders.yaml")):
        told = based(*words)
        assert "unchanged" in told.stdout
        assert "orders.approval version 1: its title is not taken, because a published version never" in told.stderr
        assert "→ give it another version in the file" in told.stderr
        (prospect,) = _workflows(based.json(*words))
        assert prospect["untaken"] == ["title"]
        assert "give it another version" in str(prospect["why"])
    assert '~ workflow title: title: "Orders" → "Purchases"' in based("diff", "orders.yaml", code=Exit.NO).stdout
    both = based("publish", written(other.replace("Who may buy", "Who buys"))).stderr
    assert "its title and description are not taken" in both
    assert "not taken" not in based("publish", written(f"# A word for readers.\n{titled}")).stderr
    based("publish", written(other.replace("version: 1", "version: 2")))
    (change,) = based.json("definitions", "diff", "orders.approval", "1", "2", code=Exit.NO)["changes"]
    assert (change["name"], change["before"], change["after"]) == ("title", "Orders", "Purchases")
    based("publish", written(RULES, "rules.json"))
    assert "its name is not taken" in based("publish", written(RULES.replace("Limits", "Bounds"), "rules.json")).stderr


def test_a_file_with_mistakes_is_not_published(based: Standfast) -> None:
    """They are told, and nothing is done."""
    result = based("publish", written(ORDERS.replace("to: confirm}", "to: confrim}")), code=Exit.NO)
    assert "did you mean 'confirm'?" in result.stderr
    assert listed(based) == []


def test_a_diff_names_steps_and_transitions(based: Standfast) -> None:
    """What is new, gone and changed, by name; exit code 1 if anything is."""
    based("publish", written(ORDERS))
    assert "says the same" in based("diff", "orders.yaml").stdout
    changed = (
        SECOND.replace("{from: review, event: rejected, to: rejected}", "{from: review, event: declined, to: rejected}")
        .replace("{id: confirm, type: system", "{id: confirm2, type: system")
        .replace("to: confirm}", "to: confirm2}")
        .replace("from: confirm,", "from: confirm2,")
    )
    result = based("diff", written(changed), code=Exit.NO)
    lines = result.stdout.splitlines()
    assert lines[0] == "orders.approval: version 1 is published, version 2 is in the file"
    assert "- step confirm" in lines
    assert "+ step confirm2" in lines
    assert '~ step review: timeout: "2d" → "3d"' in lines
    assert "- transition review --rejected→ rejected" in lines
    assert "+ transition review --declined→ rejected" in lines


def test_a_diff_tells_expressions_as_they_are_written(based: Standfast) -> None:
    """A condition that is another, new or gone is its text, and nothing of what was compiled from it."""
    asked = ORDERS.replace("to: confirm}", "to: confirm, condition: workflow.total < 100}")
    based("publish", written(asked))
    changed = asked.replace("< 100}", "< 500}").replace("version: 1", "version: 2")
    way = "~ transition review --approved→ confirm: condition"
    assert based("diff", written(changed), code=Exit.NO).stdout.splitlines()[1:] == [
        f'{way}: "workflow.total < 100" → "workflow.total < 500"'
    ]
    gone = based("diff", written(ORDERS), code=Exit.NO).stdout.splitlines()[1:]
    assert gone == [f'{way}: "workflow.total < 100" → nothing']


def test_a_diff_is_told_to_programs(based: Standfast) -> None:
    """As a list of changes, each with what it is about and how it was and is."""
    based("publish", written(ORDERS))
    based("publish", written(SECOND))
    assert based.json("diff", "orders.yaml")["changes"] == []
    told = based.json("diff", "orders.yaml", "1", code=Exit.NO)
    assert (told["before"], told["after"]) == ("1", "2")
    assert told["changes"] == [
        {
            "what": "step",
            "name": "review",
            "change": "changed",
            "field": "timeout",
            "before": "2d",
            "after": "3d",
        }
    ]


def test_what_is_not_published_cannot_be_compared(based: Standfast) -> None:
    """The sentence names what is, and one that is alike."""
    assert "nothing of this name is published" in based("diff", written(ORDERS), code=Exit.NOT_FOUND).stderr
    based("publish", "orders.yaml")
    near = based("diff", written(ORDERS.replace("orders.approval", "orders.aproval")), code=Exit.NOT_FOUND)
    assert "did you mean 'orders.approval'?" in near.stderr
    version = based("diff", written(ORDERS), "9", code=Exit.NOT_FOUND)
    assert "published are 1" in version.stderr


def test_published_workflows_are_shown(based: Standfast) -> None:
    """Step by step, as data that can be published again, or as a drawing; listed page by page."""
    based("publish", written(ORDERS + REFUNDS))
    told = based("definitions", "show", "orders.approval").stdout
    assert "○ review\n    ─▶ confirm  (approved)" in told
    data = based("definitions", "show", "orders.approval", "--json").stdout
    assert "flowchart TD" in based("definitions", "show", "orders.approval", "1", "--format", "mermaid").stdout
    assert "unchanged" in based("publish", written(data, "again.json")).stdout
    points = based.json("definitions", "pauses", "orders.approval", "1", "--trigger", "approval")["items"]
    assert [(each["step_id"], each["pause_trigger"]) for each in points] == [("review", "approval")]
    assert based("definitions", "pauses", "orders.approval", "--trigger", "timer", code=Exit.WRONG).stderr
    assert based("definitions", "pauses", "nope", code=Exit.NOT_FOUND).stderr
    assert based("definitions", "show", "nope", code=Exit.NOT_FOUND).stderr
    assert "did you mean" in based("definitions", "list", "--name", "orders.approvl", code=Exit.NOT_FOUND).stderr
    page = based.json("definitions", "list", "--limit", "1")
    assert page["next"] == "*/orders.approval/1"
    assert listed(based, "--after", "*/orders.approval/1") == [("refunds", "3", "*")]
    assert listed(based, "--name", "refunds") == [("refunds", "3", "*")]
    assert "no place in this list" in based("definitions", "list", "--after", "x", code=Exit.WRONG).stderr
