"""Commands about people: tasks, decide, directory, chains; on both stores."""

from __future__ import annotations

import re

from cli.calling import Standfast
from cli.stage import Stage
from standfast.cli.exit_codes import Exit

BOSS = ("--as", "bo", "--role", "boss")


def asked(stage: Stage, who: str = "ann") -> str:
    """The id of a question."""
    return f"{stage.begun('ask', who=who)}:1"


def listed(stage: Stage, *options: str) -> list[str]:
    """The questions of a list."""
    items = stage.standfast.json("tasks", "list", *options)["items"]
    assert isinstance(items, list)
    return [each["step_id"] for each in items]


def test_questions_are_listed_for_whom_they_ask(stage: Stage) -> None:
    """All of them for an operator, one's own for everybody else."""
    task = asked(stage)
    assert listed(stage) == listed(stage, "--mine", *BOSS) == listed(stage, "--mine-by-role", *BOSS) == [task]
    assert listed(stage, "--mine", "--as", "ann") == [task]
    assert listed(stage, "--mine", "--as", "eve") == []
    assert listed(stage, "--delegated", "--as", "ann") == []
    assert listed(stage, "--asks-role", "boss", *BOSS) == [task]
    assert listed(stage, "--definition", "order") == listed(stage, "--overdue") == []
    assert stage.standfast("tasks", "list", "--as", "eve", code=Exit.FORBIDDEN).stderr
    heads, row = stage.standfast("tasks", "list").stdout.splitlines()
    assert ("May ann?" in row, "KEY" in heads.split()) == (True, True)
    assert stage.standfast.json("tasks", "counts", *BOSS)["by_role"] == {"boss": 1}
    assert "by role" in stage.standfast("tasks", "counts", *BOSS).stdout


def test_questions_are_paged(stage: Stage) -> None:
    """Also in a list of one's own, which has an order of its own."""
    tasks = [asked(stage, str(number)) for number in range(3)]
    for options in ([], ["--mine", *BOSS]):
        first = stage.standfast.json("tasks", "list", "--limit", "2", *options)
        rest = listed(stage, "--after", str(first["next"]), *options)
        assert sorted([*(each["step_id"] for each in first["items"]), *rest]) == sorted(tasks)
    assert "no place in this list" in stage.standfast("tasks", "list", "--after", "x", code=Exit.WRONG).stderr


def test_a_question_is_decided(stage: Stage) -> None:
    """As whoever is named, who must be asked; in the words of the definition, or in those that all have."""
    task = asked(stage)
    assert stage.standfast("decide", task, "confirmed", "--as", "eve", code=Exit.FORBIDDEN).stderr
    assert "maybe" in stage.standfast("decide", task, "maybe", "--as", "ann", code=Exit.REFUSED).stderr
    assert "outcomes" in stage.standfast("tasks", "show", task).stdout
    stage.standfast("decide", task, "approve", "--as", "ann", "--comment", "fine", "--data", '{"a": 1}')
    stage.engine.drain()
    assert stage.status(task.split(":")[0]) == "completed"
    told = stage.standfast.json("tasks", "show", task)
    assert (told["decision"], told["decided_by"], told["comment"]) == ("confirmed", "ann", "fine")
    assert "ann decided confirmed: fine" in stage.standfast("tasks", "show", task).stdout
    assert stage.standfast("decide", task, "reject", "--as", "ann", code=Exit.REFUSED).stderr


def test_decisions_are_paged(stage: Stage) -> None:
    """What one has decided, newest first."""
    tasks = [asked(stage, str(number)) for number in range(3)]
    for task in tasks:
        stage.standfast("decide", task, "confirmed", "--as", "ann")
    first = stage.standfast.json("tasks", "decided", "--as", "ann", "--limit", "2")
    rest = stage.standfast.json("tasks", "decided", "--as", "ann", "--after", str(first["next"]))
    found = [each["task"]["step_id"] for each in [*first["items"], *rest["items"]]]
    assert sorted(found) == sorted(tasks)
    assert "confirmed" in stage.standfast("tasks", "decided", "--as", "ann").stdout
    wrong = stage.standfast("tasks", "decided", "--as", "ann", "--after", f"99/{tasks[0]}", code=Exit.WRONG)
    assert "no place in this list" in wrong.stderr


def test_one_deals_with_a_question_before_it_is_decided(stage: Stage) -> None:
    """Claim, release, delegate, comment, ask back, reassign, withdraw."""
    task, other = asked(stage), asked(stage, "bob")
    stage.standfast("tasks", "claim", task, "--as", "ann")
    assert "claimed" in stage.standfast("decide", task, "confirmed", *BOSS, code=Exit.REFUSED).stderr
    stage.standfast("tasks", "release", task, "--as", "ann")
    stage.standfast("tasks", "comment", task, "why so late?", "--ask", "--as", "ann")
    assert stage.standfast.json("tasks", "show", task)["status"] == "info_requested"
    stage.standfast("tasks", "comment", task, "traffic", *BOSS)
    assert "ann asks: why so late?" in stage.standfast("tasks", "show", task).stdout
    stage.standfast("tasks", "delegate", task, "dan", "--as", "ann", "--reason", "holiday")
    assert listed(stage, "--delegated", "--as", "dan") == [task]
    stage.standfast("tasks", "comment", task, "soon", "--as", "dan")
    assert "dan says: soon" in stage.standfast("tasks", "show", task).stdout
    third = asked(stage, "cat")
    stage.standfast("tasks", "delegate", third, "dan", "--as", "ann", "--reason", "holiday")
    stage.standfast("decide", third, "confirmed", "--as", "dan", "--comment", "fine")
    shown = stage.standfast("tasks", "show", third).stdout
    assert re.search("decided by +dan for ann", shown)
    assert "dan for ann decided confirmed: fine" in shown
    assert "dan for ann" in stage.standfast("history", third.split(":")[0]).stdout
    stage.standfast("tasks", "reassign", task, "eve", "--who", "dan")
    stage.standfast("decide", task, "confirmed", "--as", "eve")
    stage.standfast("tasks", "withdraw", other, "--reason", "nobody needs it")
    assert stage.standfast.json("tasks", "show", other)["status"] == "withdrawn"
    assert stage.standfast("tasks", "escalate", other, code=Exit.REFUSED).stderr


def test_a_question_that_is_not_there_is_told(stage: Stage) -> None:
    """With where to look; one of another tenant the same way."""
    task = asked(stage)
    assert "`standfast list`" in stage.standfast("tasks", "show", task, "--tenant", "x", code=Exit.NOT_FOUND).stderr
    wrong = f"{task.split(':')[0]}:99"
    assert "`standfast tasks list`" in stage.standfast("tasks", "show", wrong, code=Exit.NOT_FOUND).stderr
    assert "is not the id of a step" in stage.standfast("decide", "zzz", "confirmed", code=Exit.WRONG).stderr


def test_people_are_written_down_and_shown(based: Standfast) -> None:
    """With their roles, delegations and absences; every change is kept."""
    based("directory", "put", "bob", "--name", "Bob")
    based(
        "directory", "put", "ann", "--email", "ann@example.org", "--manager", "bob", "--attributes", '{"site": "north"}'
    )
    based("directory", "grant", "ann", "finance", "--until", "2090-01-01T00:00:00Z")
    based("directory", "delegate", "ann", "bob", "--until", "2090-01-01T00:00:00Z", "--reason", "holiday")
    based("directory", "absent", "ann", "--until", "2090-01-01T00:00:00Z", "--reason", "holiday")
    told = based("directory", "show", "ann").stdout
    assert "roles       finance" in told
    assert "ann → bob" in told
    assert "absence" in told
    data = based.json("directory", "show", "ann")
    assert data["roles"] == ["finance"]
    based("directory", "end-delegation", str(data["delegations"][0]["id"]))
    based("directory", "end-absence", str(data["absences"][0]["id"]))
    assert based.json("directory", "show", "ann")["delegations"] == []
    assert _people(based, "--holders-of", "finance") == ["ann"]
    based("directory", "grant", "bob", "finance")
    assert _people(based, "--holders-of", "finance", "--limit", "1") == ["ann"]
    assert _people(based, "--holders-of", "finance", "--after", "ann") == ["bob"]
    assert _people(based, "--limit", "1") == ["ann"]
    assert _people(based, "--after", "ann") == ["bob"]
    assert "no longer has" in based("directory", "revoke", "ann", "finance").stdout
    assert "did not have" in based("directory", "revoke", "ann", "finance").stdout
    based("directory", "deactivate", "ann")
    assert based.json("directory", "show", "ann")["person"]["is_active"] is False
    based("directory", "activate", "ann")
    actions = based.json("directory", "changes", "--person", "ann", "--limit", "3")
    assert [each["action"] for each in actions["items"]][:2] == ["activate", "deactivate"]
    older = based.json("directory", "changes", "--after", str(actions["next"]))
    assert older["items"]
    assert based.json("directory", "stranded")["items"] == []


def _people(based: Standfast, *options: str) -> list[str]:
    items = based.json("directory", "list", *options)["items"]
    assert isinstance(items, list)
    return [each["id"] for each in items]


def test_changes_of_the_directory_are_refused_to_whoever_may_not(based: Standfast) -> None:
    """And what is not sound to everybody."""
    assert based("directory", "put", "ann", "--as", "eve", code=Exit.FORBIDDEN).stderr
    told = based("directory", "show", "ann", code=Exit.NOT_FOUND).stderr
    assert "`standfast directory put` writes them into the directory" in told  # Not the call of the engine.
    assert "`standfast directory list`" in told
    based("directory", "put", "ann")
    assert based("directory", "put", "ann", "--manager", "ann", code=Exit.REFUSED).stderr
    assert based("directory", "end-absence", "99", code=Exit.NOT_FOUND).stderr


def test_chains_are_published_in_versions(based: Standfast) -> None:
    """Stages as JSON; what asks nobody is refused."""
    based("chains", "publish", "purchase", '[{"asks": ["manager"]}]', "--description", "what we buy")
    told = based("chains", "publish", "purchase", '[{"asks": ["manager"]}, {"asks": ["role:finance"]}]').stdout
    assert told == "purchase version 2 is published\n"
    assert [each["version"] for each in based.json("chains", "list")["items"]] == [2]
    assert [each["version"] for each in based.json("chains", "versions", "purchase")["items"]] == [1, 2]
    assert "  2. role:finance (any)" in based("chains", "show", "purchase").stdout.splitlines()
    assert "finance" not in based("chains", "show", "purchase", "1").stdout
    assert len(based.json("chains", "show", "purchase")["stages"]) == 2
    assert [each["version"] for each in based.json("chains", "versions", "purchase", "--after", "1")["items"]] == [2]
    assert based("chains", "publish", "purchase", "[]", code=Exit.REFUSED).stderr
    assert "are a list" in based("chains", "publish", "purchase", "{}", code=Exit.WRONG).stderr
    assert "`standfast chains list`" in based("chains", "show", "nope", code=Exit.NOT_FOUND).stderr


def test_auditors_list_changes_and_acts(stage: Stage) -> None:
    """Who changed what and why, and what was done to a run, with both names; page by page, for those who may read the audit."""
    olga = ("--as", "olga", "--can", "*")
    stage.standfast("directory", "put", "bob", *olga)
    stage.standfast("directory", "deactivate", "bob", "--reason", "left", *olga)
    run = stage.begun("ask", who="ann")
    stage.standfast("pause", run, "--reason", "look first", *olga)
    told = stage.standfast("audit", "--subject", "person", "--name", "bob", "--by", "olga").stdout
    assert ("olga" in told, "deactivate" in told, "left" in told) == (True, True, True)
    assert "olga for" not in told
    first = stage.standfast.json("audit", "--subject", "person", "--limit", "1")
    assert [each["action"] for each in first["items"]] == ["deactivate"]
    rest = stage.standfast.json("audit", "--subject", "person", "--after", str(first["next"]))["items"]
    assert [each["action"] for each in rest] == ["put"]
    page = stage.standfast.json("audit", run, "--limit", "1")
    (act,) = stage.standfast.json("audit", run, "--after", str(page["next"]))["items"]
    assert (act["actor"], act["action"], act["reason"]) == ("olga", "pause", "look first")
    assert "look first" in stage.standfast("audit", run, "--as", "audra", "--can", "audit:read").stdout
    stage.standfast("resume", run, *olga)
    for each in ("ann", "dan"):
        stage.standfast("directory", "put", each, *olga)
    stage.standfast("directory", "delegate", "ann", "dan", "--until", "2090-01-01T00:00:00Z", *olga)
    stage.standfast("decide", f"{run}:1", "confirmed", "--as", "dan", "--on-behalf-of", "ann")
    assert "dan for ann" in stage.standfast("audit", run).stdout
    assert "audit:read" in stage.standfast("audit", "--as", "eve", code=Exit.FORBIDDEN).stderr
    assert "INSTANCE" in stage.standfast("audit", run, "--by", "olga", code=Exit.WRONG).stderr
