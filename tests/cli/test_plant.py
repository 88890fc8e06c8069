"""Commands about the engine as a whole: doctor, verify, pauses, events; on both stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from cli.flows import ORDERS
from cli.stage import Stage
from standfast import Actor, Decider, Decision, load_processes
from standfast.cli.exit_codes import Exit
from standfast.graph.definition import Definition
from standfast.kernel.moment import Moment
from support.envelopes import invoice
from support.ruining import Ruin


@dataclass(frozen=True)
class Count:
    counter: str


@dataclass(frozen=True)
class Counted:
    pass


class Counter(Decider[int, Count, Counted, None]):
    """Counts."""

    type = "counter"

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Counted) -> int:
        return state + 1

    def decide(self, state: int, command: Count, moment: Moment) -> Decision:
        return Decision.event(Counted())

    def key_of(self, command: Count) -> str:
        return command.counter


class Spending:
    """A read model that reads and does nothing."""

    name = "spending"

    def apply(self, events: Sequence[object], connection: object) -> None:
        """Take in events."""

    def clear(self, connection: object) -> None:
        """Forget everything."""


def findings(stage: Stage, code: Exit) -> dict[str, str]:
    """What a look found, by what it was about."""
    told = stage.standfast.json("doctor", code=code)["findings"]
    assert isinstance(told, list)
    return {each["what"]: each["state"] for each in told}


def test_a_look_tells_whether_all_is_well(stage: Stage) -> None:
    """Nobody works and nothing waits: that is worth a note. What gave up, and work without a worker, are problems."""
    found = findings(stage, Exit.DONE)
    assert set(found.values()) == {"well", "note"} or set(found.values()) == {"well"}
    stage.begun("import", row="x")
    found = findings(stage, Exit.NO)
    assert found["dead letters"] == "problem"
    told = stage.standfast("doctor", code=Exit.NO).stdout
    assert "✗ dead letters: 1\n    → `standfast dlq list` shows them" in told
    assert "✓ database: it answers" in told


def test_a_look_tells_what_gave_up_for_other_tenants(stage: Stage) -> None:
    """Lists are those of one tenant; whoever looks at the whole is told of the others, and whoever asks for one tenant is not held up by them."""
    other = stage.engine.as_tenant("acme")
    run = other.start("import", {"row": "x"})
    stage.engine.drain()
    assert other.run(run).describe().status == "dlq"
    found = findings(stage, Exit.NO)
    assert (found["dead letters"], found["dead letters of other tenants"]) == ("well", "problem")
    told = stage.standfast("doctor", code=Exit.NO).stdout
    assert "✗ dead letters of other tenants: 1 of 'acme'\n    → `standfast doctor --tenant acme` looks at them" in told
    assert "✗ dead letters: 1\n" in stage.standfast("doctor", "--tenant", "acme", code=Exit.NO).stdout
    assert "· dead letters of other tenants: 1 of 'acme'" in stage.standfast("doctor", "--tenant", "globex").stdout


def test_a_look_tells_what_is_held_back(stage: Stage) -> None:
    """Maintenance and pauses were asked for, and are no problems."""
    stage.engine.admin.pause_processing()
    stage.standfast("pauses", "pause", "--definition", "order", "--reason", "audit")
    found = findings(stage, Exit.DONE)
    assert (found["maintenance"], found["pauses"]) == ("note", "note")


def test_a_look_tells_of_keys_whose_maker_has_left(stage: Stage) -> None:
    """Such a key holds, and programs need it: it is worth a note, until it is revoked or its maker is back."""
    people, keys = stage.engine.directory, stage.engine.keys
    people.put("mal")
    mal = stage.engine.acting(Actor(id="mal", capabilities=frozenset({"keys:manage", "execution:start"})))
    made = mal.keys.create("nightly", actor="bot", capabilities=["execution:start"])
    mal.keys.create("own", actor="mal")
    keys.create("shop", actor="shop")
    assert "keys of leavers" not in findings(stage, Exit.DONE)
    people.deactivate("mal")
    assert stage.engine.admin.identify(made.secret) is not None
    assert findings(stage, Exit.DONE)["keys of leavers"] == "note"
    told = stage.standfast("doctor").stdout
    assert f"· keys of leavers: {made.key.id} ('nightly' as 'bot', made by 'mal')\n    → " in told
    keys.revoke(made.key)
    assert "keys of leavers" not in findings(stage, Exit.DONE)


def test_a_history_is_compared_with_what_is_stored(stage: Stage) -> None:
    """One run, or a page of all; exactly one of both is asked for."""
    runs = [stage.begun("import", row=5) for _ in range(3)]
    assert stage.standfast("verify", runs[0]).stdout == f"{runs[0]} is what the history says\n"
    assert stage.standfast("verify", "--all").stdout == "3 runs are what the history says\n"
    page = stage.standfast.json("verify", "--all", "--limit", "2")
    rest = stage.standfast.json("verify", "--all", "--after", str(page["next"]))
    found = [each["instance"] for each in [*page["items"], *rest["items"]]]
    assert sorted(found) == sorted(runs)
    assert "there is more" in stage.standfast("verify", "--all", "--limit", "2").stderr
    assert "name a run, or give --all" in stage.standfast("verify", code=Exit.WRONG).stderr
    assert "name a run, or give --all" in stage.standfast("verify", runs[0], "--all", code=Exit.WRONG).stderr


@pytest.mark.row("E-072", "E-783")
def test_the_rules_of_documents_are_looked_at_and_set_right(stage: Stage) -> None:
    """With progress; what is wrong by rule, document and remedy; and what the history tells is made again."""
    stage.engine.register(Definition(graph=invoice()))
    for name in ("I-1", "I-2"):
        stage.engine.documents.create("invoice", {"vendor": "acme", "total": 5}, id=name)
    whole = stage.standfast("doctor", "--invariants")
    assert (whole.stdout, whole.stderr) == ("2 documents keep all rules\n", "2 documents looked at, 0 findings\n")
    Ruin(stage.engine.service.store).run("update {}documents set status = 'active' where id = 'I-2'")
    told = stage.standfast("doctor", "--invariants", code=Exit.NO).stdout
    assert "✗ WF-15 invoice/I-2 (" in told
    assert "→ `standfast doctor --invariants --repair`" in told
    assert stage.standfast("doctor", "--invariants", "--rule", "WF-01").stdout == "2 documents keep all rules\n"
    found = stage.standfast.json("doctor", "--invariants", "--repair")
    assert (found["is_well"], found["checked"], found["repaired"][0]["tables"]) == (True, 2, ["documents"])
    assert stage.engine.documents.get("invoice", "I-2").status == "draft"
    assert stage.standfast("doctor", "--invariants", "--anew").stdout == "2 documents keep all rules\n"
    assert "add --invariants" in stage.standfast("doctor", "--repair", code=Exit.WRONG).stderr
    assert "no rule WF-99" in stage.standfast("doctor", "--invariants", "--rule", "WF-99", code=Exit.WRONG).stderr


def test_definitions_are_paused(stage: Stage) -> None:
    """By workflow, version and step; ended by number or by the same scope; and all of it is listed."""
    first = stage.standfast.json(
        "pauses", "pause", "--definition", "order", "--step", "charge", "--reason", "bank", "--for", "1h"
    )
    stage.standfast("pauses", "pause", "--definition", "import")
    lines = stage.standfast("pauses", "list").stdout.splitlines()
    assert [line.split()[2] for line in lines[1:]] == ["import", "order"]
    assert "settled" in stage.standfast("pauses", "show", str(first["id"])).stdout
    assert stage.standfast.json("pauses", "resume", str(first["id"]))["ended_by"] == "system"
    stage.standfast("pauses", "resume", "--definition", "import", "--reason", "done")
    assert stage.standfast.json("pauses", "list")["items"] == []
    page = stage.standfast.json("pauses", "list", "--with-ended", "--limit", "1")
    shown = stage.standfast("pauses", "list", "--with-ended", "--limit", "1")
    assert shown.stderr == f"there is more: --after {page['next']}\n"
    rest = stage.standfast.json("pauses", "list", "--with-ended", "--after", str(page["next"]))
    assert [each["id"] for each in rest["items"]] == [first["id"]]
    assert "not_paused" in stage.standfast("pauses", "resume", "--definition", "order", code=Exit.REFUSED).stderr
    assert stage.standfast("pauses", "pause", "--definition", "ordr", code=Exit.NOT_FOUND).stderr
    assert stage.standfast("pauses", "pause", "--whole-tenant", "--as", "eve", code=Exit.FORBIDDEN).stderr


def test_nobody_holds_a_whole_tenant_back_by_forgetting_a_name(stage: Stage) -> None:
    """A pause without a scope is refused, and says how everything is held back on purpose."""
    told = stage.standfast("pauses", "pause", "--reason", "audit", code=Exit.WRONG).stderr
    assert "say --whole-tenant" in told
    assert stage.standfast.json("pauses", "list")["items"] == []
    stage.standfast("pauses", "pause", "--whole-tenant", "--reason", "audit")
    (held,) = stage.standfast.json("pauses", "list")["items"]
    assert (held["definition"], held["reason"]) == ("", "audit")


def test_events_are_published_and_listed(stage: Stage) -> None:
    """With a key, data and an id that makes the call safe to repeat."""
    event = ("events", "publish", "payment", "o-1", "--data", '{"amount": 5}', "--id", "p-1")
    assert stage.standfast(*event).stdout == stage.standfast(*event).stdout == "p-1\n"
    stage.standfast("events", "publish", "payment", "o-1", "--data", '{"amount": 6}', "--id", "p-1", code=Exit.CONFLICT)
    stage.standfast("events", "publish", "other", "--ttl", "1h", "--match-one", "--id", "p-2")
    page = stage.standfast.json("events", "list", "--limit", "1")
    assert [each["id"] for each in page["items"]] == ["p-1"]
    rest = stage.standfast.json("events", "list", "--after", str(page["next"]))
    assert [each["id"] for each in rest["items"]] == ["p-2"]
    assert len(stage.standfast("events", "list", "--event", "other").stdout.splitlines()) == 2
    assert stage.standfast.json("events", "show", "p-1")["payload"] == {"amount": 5}
    assert "payment" in stage.standfast("events", "show", "p-1").stdout
    assert "`standfast events list`" in stage.standfast("events", "show", "nope", code=Exit.NOT_FOUND).stderr


def test_maintenance_begins_and_ends(stage: Stage) -> None:
    """For all processes; commands are refused too if that is wanted."""
    assert "maintenance  none" in stage.standfast("maintenance", "show").stdout
    stage.standfast("maintenance", "begin")
    assert stage.standfast.json("maintenance", "show")["maintenance"] == "pause"
    stage.standfast("start", "order")
    stage.standfast("maintenance", "begin", "--refuse-commands")
    assert "`standfast doctor`" in stage.standfast("start", "order", code=Exit.UNAVAILABLE).stderr
    stage.standfast("maintenance", "end")
    stage.standfast("start", "order")
    told = stage.standfast.json("maintenance", "show")
    assert told["maintenance"] == ""
    assert [each["count"] for each in told["backlog"] if each["kind"] == "effect"] == [2]


def test_projections_are_listed_and_dropped(stage: Stage) -> None:
    """How far each has read."""
    stage.engine.project(Spending())
    stage.begun("import", row=5)
    (found,) = stage.standfast.json("projections", "list")["items"]
    assert found["name"] == "spending"
    stage.standfast("projections", "drop", "spending")
    assert stage.standfast.json("projections", "list")["items"] == []
    assert stage.standfast("projections", "drop", "spending", code=Exit.NOT_FOUND).stderr


def test_commands_that_wait_are_listed_and_buried(stage: Stage) -> None:
    """They are found among the dead letters then, and can be discarded there."""
    stage.engine.register(Counter())
    stage.engine.deciders.submit(Counter, Count("c-1"))
    (found,) = stage.standfast.json("inbox", "list", "--definition", "counter")["items"]
    assert (found["type"], found["key"]) == ("Count", "c-1")
    assert stage.standfast.json("inbox", "list", "--type", "Other")["items"] == []
    stage.standfast("inbox", "bury", str(found["id"]))
    assert stage.standfast.json("inbox", "list")["items"] == []
    (letter,) = stage.standfast.json("dlq", "list", "--source", "inbox")["items"]
    stage.standfast("dlq", "discard", str(letter["id"]))
    assert stage.standfast.json("dlq", "list")["items"] == []
    assert stage.standfast("inbox", "bury", "99", code=Exit.NOT_FOUND).stderr


@pytest.mark.row("G-10")
def test_instances_of_any_kind_are_listed_and_deleted(stage: Stage) -> None:
    """Those of deciders too; one that has not ended is not deleted."""
    done, running = stage.begun("import", row=5), stage.begun("order", amount=5)
    found = stage.standfast.json("instances", "list", "--kind", "saga", "--limit", "1")
    rest = stage.standfast.json("instances", "list", "--after", str(found["next"]))
    assert {each["id"] for each in [*found["items"], *rest["items"]]} == {done, running}
    assert stage.standfast.json("instances", "list", "--attribute", "amount=5")["items"] == []
    assert "write name=value" in stage.standfast("instances", "list", "--attribute", "x", code=Exit.WRONG).stderr
    assert stage.standfast("instances", "delete", running, code=Exit.NOT_FOUND).stderr
    stage.standfast("instances", "delete", done)
    assert stage.standfast("show", done, code=Exit.NOT_FOUND).stderr


@pytest.mark.row("P-140")
def test_processes_whose_time_is_over_are_listed(stage: Stage) -> None:
    """Of one tenant or of all, a page at a time, and only those that are active."""
    timed = ORDERS.replace("orders.approval", "orders.timed").replace("version: 1", "version: 1\n    timeout: 9d")
    for definition in load_processes(timed):
        stage.engine.register(definition)
    runs = [stage.standfast("start", "orders.timed").stdout.strip() for _ in range(2)]
    there = stage.standfast("start", "orders.timed", "--tenant", "t2").stdout.strip()
    stage.standfast("start", "orders.approval")  # Its step has a time, and it has none.
    assert stage.standfast.json("processes", "expired", "--all-tenants")["items"] == []
    words = ("processes", "expired", "--before", "2040-01-01T00:00:00Z")
    first = stage.standfast.json(*words, "--limit", "1")
    rest = stage.standfast.json(*words, "--after", str(first["next"]))
    assert sorted(each["id"] for each in first["items"] + rest["items"]) == sorted(runs)
    assert {each["tenant_id"] for each in stage.standfast.json(*words, "--all-tenants")["items"]} == {"default", "t2"}
    assert [each["id"] for each in stage.standfast.json(*words, "--tenant", "t2")["items"]] == [there]
    for wrong, told in ((["--before", "never"], "no time"), (["--after", "zzz"], "no place in this list")):
        assert told in stage.standfast("processes", "expired", *wrong, code=Exit.WRONG).stderr
    refused = stage.standfast(*words, "--all-tenants", "--tenant", "t2", "--as", "ann", code=Exit.FORBIDDEN)
    assert "not_allowed" in refused.stderr


def test_processes_are_seen_as_the_actor_sees_them(stage: Stage) -> None:
    """What they can do with one; and which there are."""
    runs = [stage.standfast("start", "orders.approval", "--as", "ann").stdout.strip() for _ in range(2)]
    told = stage.standfast("processes", "show", runs[0]).stdout
    assert "  ▸ approved (approved)" in told.splitlines()
    assert stage.standfast.json("processes", "show", runs[0])["may_cancel"] is True
    page = stage.standfast.json("processes", "list", "--limit", "1", "--started-by", "ann")
    rest = stage.standfast.json("processes", "list", "--after", str(page["next"]), "--status", "active")
    assert {each["id"] for each in [*page["items"], *rest["items"]]} == set(runs)
    assert stage.standfast.json("processes", "list", "--asks-role", "boss")["items"] == []
    assert stage.standfast.json("processes", "list", "--mine", "--as", "eve")["items"] == []
    assert (
        "`standfast list`" in stage.standfast("processes", "show", runs[0], "--tenant", "x", code=Exit.NOT_FOUND).stderr
    )
