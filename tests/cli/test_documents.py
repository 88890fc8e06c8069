"""Commands about documents, contracts and bodies, on both stores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.documents.blueprints import BODY, SCENARIOS
from app.documents.test_rows import submitted
from cli.calling import Standfast
from standfast.cli.exit_codes import Exit
from standfast.graph.definition import Definition
from standfast.graph.model import HandlerCall, Node, TaskOp
from standfast.testing import ManualEngine
from support.envelopes import APPROVE_SLOT, approval, both, invoice

ACME = ("--tenant", "acme")
DATA = {"number": "R-1", "vendor_id": "V-1", "grand_total": 40_000}
LARGE = """    entry: branch
    exit: join
    edges:
      - {from: in, to: manager, when: entity.grand_total > 1000}
      - {from: in, to: out}
      - {from: manager, to: out}
"""
"""Edges of that body: a manager looks at large invoices only."""
CLERK = (*ACME, "--as", "bob", "--can", "invoice.*")


def saved(standfast: Standfast, tmp_path: Path, text: str = BODY) -> str:
    """The id of a draft."""
    file = tmp_path / "body.yaml"
    file.write_text(text, encoding="utf-8")
    return str(standfast.json("bodies", "draft", str(file), *ACME)["id"])


@pytest.mark.row("E-861")
def test_bodies_from_a_file_to_what_is_in_force(based: Standfast, tmp_path: Path) -> None:
    """A contract is published, a body is validated, drafted, published, compared, rolled back and archived, all at the command line."""
    ready = {each["entity_type"] for each in based.json("contracts", "ready")["items"]}
    assert {"invoice", "purchase_order", "sales_order"} <= ready
    assert "it can be published" in based("contracts", "validate", "--ready", "invoice").stdout
    assert "invoice version 1 is published" in based("contracts", "publish", "--ready", "invoice").stdout
    assert [each["type"] for each in based.json("contracts", "list", *ACME)["items"]] == ["invoice"]
    assert "slot:submitted_to_approved" in based("contracts", "show", "invoice").stdout
    file = tmp_path / "body.yaml"
    file.write_text(BODY.replace("role: manager", "rle: manager"), encoding="utf-8")
    assert "rle" in based("bodies", "validate", str(file), *ACME, code=Exit.NO).stdout
    file.write_text(BODY + SCENARIOS.replace("active", "cancelled"), encoding="utf-8")
    assert "was to be 'cancelled'" in based("bodies", "validate", str(file), *ACME, code=Exit.NO).stdout
    file.write_text(BODY + SCENARIOS, encoding="utf-8")
    assert "can be published" in based("bodies", "validate", str(file), *ACME).stdout
    draft = saved(based, tmp_path, BODY + SCENARIOS)
    assert draft in based("bodies", "drafts", *ACME).stdout
    assert [
        each["is_passed"] if "is_passed" in each else each["faults"] == []
        for each in based.json("bodies", "scenarios", "--draft", draft, *ACME)["items"]
    ] == [True]
    assert "invoice version 1 is published, as workflow 1-org" in based("bodies", "publish", draft, *ACME).stdout
    taken = based.json("bodies", "take", "fast_track", "--set", "threshold=500", "--set", "approver_role=cfo", *ACME)
    assert "cfo" in based("bodies", "export", "--draft", taken["id"], *ACME).stdout
    based("bodies", "publish", taken["id"], *ACME)
    assert (
        "usr:slot:submitted_to_approved:manager" in based("bodies", "diff", "invoice", "--version", "1", *ACME).stdout
    )
    assert (
        based.json("bodies", "diff", "invoice", "--version", "2", "--against", "1", *ACME)["entity_type"] == "invoice"
    )
    assert "version 3 is published" in based("bodies", "rollback", "invoice", "1", *ACME).stdout
    assert [each["status"] for each in based.json("bodies", "versions", "invoice", *ACME)["items"]] == [
        "archived",
        "archived",
        "published",
    ]
    file.write_text(based("bodies", "export", "invoice", *ACME).stdout, encoding="utf-8")
    assert "version 1 is published" in based("bodies", "import", str(file), "--publish", "--tenant", "rival").stdout
    assert "is archived" in based("bodies", "archive", "invoice", "--reason", "bad", *ACME).stdout
    refused = based("docs", "create", "invoice", json.dumps(DATA), *CLERK, code=Exit.REFUSED).stderr
    assert "WORKFLOW_ARCHIVED" in refused
    assert "bad" in based("bodies", "show", "invoice", "--version", "3", *ACME).stdout
    assert based.json("bodies", "list", *ACME)["items"] == based.json("bodies", "recompile", *ACME)["items"] == []


@pytest.mark.row("EO-11", "EO-12")
def test_workflows_at_the_command_line(based: Standfast, tmp_path: Path) -> None:
    """Taken out of use and put back, with those under way; and documents are moved, or it is told why not."""
    based("contracts", "publish", "--ready", "invoice")
    based("bodies", "publish", saved(based, tmp_path), *ACME)
    based("docs", "create", "invoice", json.dumps(DATA), "--id", "I-1", *CLERK)
    based("bodies", "publish", saved(based, tmp_path), *ACME)
    why = ("--reason", "bad")
    assert "2-org" in based("bodies", "suspend", "invoice", "2-org", *why, *ACME).stdout
    assert based.json("docs", "create", "invoice", json.dumps(DATA), *CLERK)["workflow_version"] == "1-org"
    based("bodies", "suspend", "invoice", "9-org", *why, *ACME, code=Exit.NOT_FOUND)
    assert based.json("bodies", "lift", "invoice", "2-org", *why, *ACME)["is_suspended"] is False
    assert len(based.json("bodies", "suspensions", *ACME)["items"]) == 2
    told = based.json("bodies", "move", "invoice", "1-org", "2-org", "--dry-run", *why, *ACME)["items"]
    assert [each["is_moved"] for each in told] == [True, True]
    based("bodies", "move", "invoice", "1-org", "2-org", "--node", "x=y", *why, *ACME, code=Exit.NO)
    based("bodies", "move", "invoice", "1-org", "2-org", "--document", "I-1", *why, *ACME)
    assert based.json("docs", "show", "invoice", "I-1", *ACME)["workflow_version"] == "2-org"


def test_two_people_at_the_command_line(based: Standfast, tmp_path: Path) -> None:
    """The rule is in the database, so that it holds for whoever comes with whatever tool."""
    based("contracts", "publish", "--ready", "invoice")
    assert based.json("bodies", "rules", *ACME)["two_person"] is False
    assert "yes" in based("bodies", "rules", "--two-person", *ACME).stdout
    draft = saved(based, tmp_path)
    assert "SECOND_PERSON_REQUIRED" in based("bodies", "publish", draft, *ACME, code=Exit.FORBIDDEN).stderr
    paul = (*ACME, "--as", "paul", "--can", "bodies:publish")
    assert "REVISION_REQUIRED" in based("bodies", "publish", draft, *paul, code=Exit.REFUSED).stderr
    based("bodies", "publish", draft, "--revision", "1", *paul)
    other = saved(based, tmp_path)
    based("bodies", "discard", other, *ACME)
    assert based("bodies", "discard", other, *ACME, code=Exit.NOT_FOUND).stderr


@pytest.mark.row("E-861")
def test_documents_at_the_command_line(based: Standfast, tmp_path: Path) -> None:
    """Created, edited, submitted, amended, compared; with the window, and who may do what."""
    based("contracts", "publish", "--ready", "invoice")
    based("bodies", "publish", saved(based, tmp_path), *ACME)
    made = based.json("docs", "create", "invoice", json.dumps(DATA), "--id", "I-1", *CLERK)
    assert (made["status"], made["workflow_version"]) == ("draft", "1-org")
    based("docs", "edit", "invoice", "I-1", '{"grand_total": 50000}', "--expected-version", "1", *CLERK)
    again = based(
        "docs", "edit", "invoice", "I-1", '{"note": "x"}', "--expected-version", "1", *CLERK, code=Exit.CONFLICT
    )
    assert "version_conflict" in again.stderr.lower()
    assert "▸ submit" in based("docs", "windows", "invoice", "I-1", *CLERK).stdout
    assert based.json("docs", "submit", "invoice", "I-1", *CLERK)["window"] == "amend_only"
    (task,) = based.json("tasks", "list", *ACME)["items"]
    assert "document version  2" in based("tasks", "show", task["step_id"], *ACME).stdout
    boss = (*ACME, "--as", "mia", "--role", "manager")
    stale = based("decide", task["step_id"], "rejected", "--comment", "no", *boss, code=Exit.REFUSED).stderr
    assert "--document-version" in stale
    decided = ("decide", task["step_id"], "rejected", "--comment", "no", "--document-version", "2")
    assert "is answered" in based(*decided, *boss).stdout
    based("docs", "submit", "invoice", "I-1", *CLERK)
    amended = based.json("docs", "edit", "invoice", "I-1", '{"grand_total": 60000}', *CLERK)
    assert (amended["is_amendment"], amended["status"]) == (True, "amended")
    shown = based("docs", "show", "invoice", "I-1", *ACME).stdout
    assert amended["id"] in shown
    assert based.json("docs", "diff", "invoice", "I-1", "1", "2", *ACME)["items"][0]["field"] == "grand_total"
    assert len(based.json("docs", "versions", "invoice", "I-1", *ACME)["items"]) == 2
    assert "50000" in based("docs", "show", "invoice", "I-1", "--version", "2", *ACME).stdout
    assert "<td>50000</td>" in based("docs", "page", "invoice", "I-1", "--version", "2", *ACME).stdout
    assert "bob" in based("docs", "audit", "invoice", "I-1", *ACME).stdout
    assert "update" in based("docs", "mutations", "invoice", "I-1", *ACME).stdout
    assert "cancelled" in based("docs", "transition", "invoice", amended["id"], "cancel", *CLERK).stdout
    listing = based.json("docs", "list", "invoice", "--status", "cancelled", *ACME)
    assert {each["id"] for each in listing["items"]} == {"I-1", amended["id"]}
    assert based("docs", "show", "invoice", "I-1", "--tenant", "rival", code=Exit.NOT_FOUND).stderr
    trail = based.json("bodies", "dry-run", "invoice", json.dumps(DATA), "--decide", "manager=rejected", *ACME)
    assert (trail["ends"], trail["status"]) == ("waits", "draft")
    assert "? manager → approved" in based("bodies", "dry-run", "invoice", json.dumps(DATA), *ACME).stdout


def test_a_document_that_another_system_keeps(based: Standfast, tmp_path: Path) -> None:
    """One that was there before is adopted, its keeper asks before it writes and tells what it wrote, and the trail tells all of it."""
    based("contracts", "publish", "--ready", "invoice")
    based("bodies", "publish", saved(based, tmp_path, BODY + LARGE), *ACME)
    given = json.dumps({**DATA, "currency": "EUR"})
    adopting = ("docs", "adopt", "invoice", "OLD", given, "--version", "3", "--reason", "moved here")
    assert "--status" in based(*adopting, *ACME, code=Exit.WRONG).stderr
    assert based(*adopting, "--status", "active", *CLERK, code=Exit.FORBIDDEN).stderr
    adopted = based.json(*adopting, "--status", "draft", *ACME)
    assert (adopted["status"], adopted["version"]) == ("draft", 3)
    asked = ("docs", "check-edit", "invoice", "OLD", '{"grand_total": 50000}')
    assert based.json(*asked, *CLERK)["is_allowed"] is True
    told = ("docs", "notify-mutation", "invoice", "OLD", '{"grand_total": 50000}', "--idempotency-key", "change-1")
    assert [based.json(*told, *CLERK)["version"] for _ in range(2)] == [4, 4]
    based("docs", "submit", "invoice", "OLD", *CLERK)
    refused = based(*asked, *CLERK, code=Exit.NO).stdout
    assert "AMENDMENT_REQUIRED" in refused
    drifted = based.json("docs", "notify-mutation", "invoice", "OLD", '{"grand_total": 1}', *CLERK)
    assert (drifted["version"], drifted["data"]["grand_total"], drifted["run_status"]) == (4, 50_000, "paused")
    rounds = based.json("docs", "rounds", "invoice", "OLD", *ACME)["items"]
    assert [each["round"] for each in rounds] == [1]
    (choice,) = based.json("docs", "choices", "invoice", "OLD", *ACME)["items"]
    assert choice["asked"][0]["result"] is True
    assert choice["asked"][0]["expression"] in based("docs", "choices", "invoice", "OLD", *ACME).stdout
    (link,) = based.json("docs", "links", "invoice", "OLD", *ACME)["items"]
    assert (link["how"], link["id"]) == ("refers_to", "V-1")
    for words in (("rounds",), ("links",), ("choices",), ("check-edit", "{}"), ("notify-mutation", "{}")):
        assert based("docs", words[0], "invoice", "NONE", *words[1:], *CLERK, code=Exit.NOT_FOUND).stderr


def test_a_branch_of_a_document_is_ended(based: Standfast) -> None:
    """By the document's own name, as by that of its run; one with an approval ahead is kept."""
    check = Node(id="check", op=TaskOp(work=HandlerCall(handler="check")))
    engine = ManualEngine(based.url, is_alone=False)
    engine.register(Definition(graph=invoice({APPROVE_SLOT: both(approval("first"), check)})))
    made = submitted(engine)
    steps = based.json("show", str(made))["steps"]
    tokens = {each["name"]: each["token"] for each in steps}
    ending = ("docs", "cancel-branch", "invoice", "I-1")
    kept = based(*ending, tokens["first"], "--reason", "x", code=Exit.REFUSED).stderr
    assert "[protected]" in kept
    assert "--reason" in based(*ending, tokens["check"], code=Exit.WRONG).stderr
    told = based(*ending, tokens["check"], "--reason", "the checker is gone").stdout
    assert told == f"branch {tokens['check']} of invoice I-1 has ended\n"
    after = {each["name"]: each["status"] for each in based.json("show", str(made))["steps"]}
    assert (after["check"], after["first"]) == ("cancelled", "waiting_decision")
    engine.stop()


def test_what_is_typed_wrong(tmp_path: Path) -> None:
    """Neither a type nor a draft, a pair without a value, a file that is not there: a sentence, and nothing is done."""
    standfast = Standfast(f"sqlite:///{tmp_path}/a.db")
    standfast("migrate", standfast.url)
    wrong = [
        ("bodies", "export"),
        ("bodies", "scenarios", "invoice", "--draft", "x"),
        ("bodies", "dry-run", "invoice", "{}", "--decide", "manager"),
        ("bodies", "take", "fast_track", "--set", "threshold"),
        ("bodies", "draft", "nowhere.yaml"),
        ("contracts", "publish"),
        ("contracts", "publish", "a.yaml", "--ready", "invoice"),
        ("docs", "edit", "invoice", "I-1", "[]"),
        ("docs", "create", "invoice", "{}", "--app", "nowhere"),
    ]
    for words in wrong:
        assert standfast(*words, code=Exit.WRONG).stderr
    assert "`standfast contracts list`" in standfast("bodies", "take", "fast_track", code=Exit.NOT_FOUND).stderr
    assert "there are" in standfast("contracts", "publish", "--ready", "bill", code=Exit.NOT_FOUND).stderr
    assert "--ready invoice" in standfast("contracts", "publish", "invoice", code=Exit.WRONG).stderr
    file = tmp_path / "body.yaml"
    file.write_text(BODY, encoding="utf-8")
    missing = standfast("bodies", "validate", str(file), code=Exit.NO).stdout
    assert "no contract 'invoice' is published; `standfast contracts publish` does that" in missing
