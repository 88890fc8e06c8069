"""The same words against a database and against a server: what they print is the same, and errors are one sentence."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from api.addresses import GHOST
from api.serving import served
from app.documents.blueprints import BODY, SCENARIOS
from cli.calling import Standfast
from cli.flows import ORDERS
from cli.stage import Stage
from standfast import Engine, cli
from standfast.app.api import sync as blocking
from standfast.cli.exit_codes import Exit
from standfast.cli.remote import (
    access as remote_access,
)
from standfast.cli.remote import (
    calls as remote,
)
from standfast.cli.remote import (
    definitions as remote_publishing,
)
from standfast.cli.remote import (
    directory as remote_directory,
)
from standfast.cli.remote import (
    documents as remote_documents,
)
from standfast.cli.remote import (
    people as remote_people,
)
from standfast.cli.remote import (
    platform as remote_plant,
)
from standfast.cli.remote import (
    reports as remote_proofs,
)
from standfast.cli.remote import (
    schedules as remote_plans,
)
from standfast.client import Client
from standfast.http import HttpOptions
from standfast.store.opening import open_store
from support.samples import Add, Counter

FEW = HttpOptions(max_page=2)
MACHINE = {"applications", "init", "serve", "simulate", "worker"}
"""Modules of commands that are about this machine."""
"""Pages of a server are shorter than those that commands ask for."""


class Remote:
    """A stage, and the command against a server on the same database."""

    def __init__(self, stage: Stage, address: str, secret: str) -> None:
        self.stage = stage
        self.here = stage.standfast
        self.place = ("--server", address, "--api-key", secret)

    def there(self, *words: str, code: int = 0) -> Result:
        """Ask the server."""
        return Standfast()(*words, *self.place, code=code)

    def same(self, *words: str, code: int = 0) -> str:
        """What a command prints, which is the same on the database and against the server."""
        here, there = self.here(*words, code=code), self.there(*words, code=code)
        assert there.stdout == here.stdout
        return here.stdout


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """One server for all tests of the module; which store it is on makes no difference to who asks it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('remote') / 'standfast.db'}"
    open_store(url).close()
    stage = Stage(Standfast(url))
    stage.engine.register(Counter())
    engine = Engine(url, migrate=False)
    try:
        with served(engine, FEW) as address:
            made = engine.keys.create("all", actor="ann", roles=["boss"], capabilities=["*"])
            yield Remote(stage, address, made.secret)
    finally:
        engine.stop()
        stage.engine.stop()


def test_looking_is_the_same(asked: Remote) -> None:
    """Lists with their pages and filters, one run, its history, and why it does not move; as text and as JSON."""
    order = asked.stage.begun("order", amount=7)
    asked.stage.begun("import", row="x")
    for _ in range(3):
        asked.stage.begun("order", amount=1)
    for words in (
        ("list",),
        ("list", "--json"),
        ("list", "--limit", "2"),
        ("list", "--definition", "order", "--active", "--limit", "4"),
        ("list", "--status", "failed"),
        ("list", "--oldest-first", "--limit", "3"),
        ("list", "--oldest-first", "--active", "--definition", "order"),
        ("list", "--paused"),
        ("list", "--paused", "--next-step", "charge"),
        ("processes", "expired", "--before", "2040-01-01T00:00:00Z"),
        ("list", "--stuck"),
        ("show", order),
        ("show", order, "--json"),
        ("show", order, "--at", "2"),
        ("history", order),
        ("history", order, "--limit", "3"),
        ("why", order),
        ("dlq", "list"),
        ("dlq", "list", "--definition", "import", "--json"),
        ("dlq", "groups", "--definition", "import"),
        ("dry-run", "order", '{"amount": 7}'),
        ("dry-run", "order", "--answer", 'charge={"id": 7}', "--json"),
    ):
        assert asked.same(*words)
    newest = [each["id"] for each in asked.here.json("list")["items"]]
    first = asked.here.json("list", "--oldest-first", "--limit", "2")
    rest = asked.here.json("list", "--oldest-first", "--after", first["next"])
    assert [each["id"] for each in (*first["items"], *rest["items"])] == newest[::-1]
    more = asked.there("list", "--limit", "2").stderr.split("--after ")[1].strip()
    assert asked.same("list", "--after", more)


def test_doing_is_the_same(asked: Remote) -> None:
    """Start, pause, resume, signal, retry, cancel: what is done there is found here."""
    run = asked.there("start", "order", "--input", '{"amount": 9}', "--key", "o-9").stdout.strip()
    asked.stage.engine.drain()
    asked.there("pause", run, "--reason", "audit", "--until", "2099-01-01T00:00:00Z")
    assert asked.stage.status(run) == "paused"
    assert run in asked.same("list", "--paused")
    asked.there("resume", run)
    assert asked.there("signal", run, "payment").stdout == f"signal 'payment' sent to {run}\n"
    asked.stage.engine.drain()
    assert asked.stage.status(run) == "completed"
    letter = asked.stage.begun("import", row="y")
    asked.there("retry", letter, "row", "--reason", "mended", "--input", '{"row": 7}')
    asked.stage.engine.drain()
    assert asked.stage.status(letter) == "completed"
    gone = asked.stage.begun("ask", who="ann")
    assert asked.there("abort", gone, "--reason", "no", "--wait", "5s").stdout == "aborted\n"


def test_questions_are_answered_as_whoever_the_key_names(asked: Remote) -> None:
    """The inbox of the key's bearer; an answer by the words of the definition, or by yes and no."""
    asked.stage.begun("ask", who="ann")
    task = asked.there("tasks", "list", "--mine", "--json").stdout.split('"step_id": "')[1].partition('"')[0]
    asked.same("tasks", "show", task)
    asked.there("tasks", "comment", task, "see page 3")
    asked.there("decide", task, "approve", "--comment", "fine")
    assert "fine" in asked.same("tasks", "show", task)
    assert task in asked.there("tasks", "decided").stdout


def test_processes_are_led_on(asked: Remote) -> None:
    """They are listed, shown to whoever the key names, and left by an event."""
    run = asked.stage.begun("orders.approval", order_id="o-1")
    assert run in asked.same("processes", "list")
    assert asked.same("processes", "list", "--limit", "1", "--json")
    assert "approved" in asked.there("processes", "show", run).stdout
    refused = asked.there("advance", run, "shipped", code=Exit.REFUSED)
    assert "shipped" in refused.stderr
    assert "confirm" in asked.there("advance", run, "approved", "--comment", "fine").stdout


def test_people_and_chains_are_kept(asked: Remote) -> None:
    """Somebody is written, given roles, stood in for, away, and sent away; what is done there is shown alike here."""
    there, same = asked.there, asked.same
    for person in ("ann", "bob", "eve"):
        assert there("directory", "put", person, "--name", person.title()).stdout == f"{person} is in the directory\n"
    there("directory", "put", "ann", "--manager", "bob", "--attributes", '{"floor": 3}')
    there("directory", "grant", "ann", "finance", "--until", "2099-01-01T00:00:00Z")
    there("directory", "delegate", "ann", "bob", "--for-role", "finance", "--reason", "holiday")
    there("directory", "absent", "eve", "--reason", "ill")
    there("directory", "deactivate", "eve")
    assert "eve" not in same("directory", "list", "--limit", "2")
    assert "eve" in same("directory", "list", "--after", "bob")
    for words in (
        ("list", "--json"),
        ("list", "--holders-of", "finance"),
        ("show", "ann"),
        ("show", "eve", "--json"),
        ("changes", "--person", "ann"),
        ("changes", "--limit", "3", "--json"),
        ("stranded",),
    ):
        assert same("directory", *words)
    absence = asked.here.json("directory", "show", "eve")["absences"][0]["id"]
    assert there("directory", "end-absence", str(absence)).stdout == f"absence {absence} is over\n"
    delegation = asked.here.json("directory", "show", "ann")["delegations"][0]["id"]
    there("directory", "end-delegation", str(delegation))
    there("directory", "activate", "eve")
    assert there("directory", "revoke", "ann", "finance").stdout == "ann no longer has the role finance\n"
    assert there("directory", "show", "nobody", code=Exit.NOT_FOUND).stderr
    for stages in ('[{"asks": ["manager"]}]', '[{"asks": ["manager"]}, {"asks": ["role:finance"]}]'):
        there("chains", "publish", "purchase", stages, "--description", "what is bought")
    for words in (("list",), ("versions", "purchase"), ("versions", "purchase", "--after", "1"), ("show", "purchase")):
        assert same("chains", *words)
    assert same("chains", "show", "purchase", "1", "--json")
    assert "chain" in there("chains", "show", "nothing", code=Exit.NOT_FOUND).stderr


def test_files_are_published_compared_and_set_aside(asked: Remote, tmp_path: Path) -> None:
    """A file of processes, as YAML with its comments, becomes a version of the key's tenant; a mistake is told with its place."""
    there, same = asked.there, asked.same
    file = tmp_path / "leave.yaml"
    file.write_text(f"# Who may go when.\n{ORDERS.replace('orders', 'leave')}", encoding="utf-8")
    assert "new" in there("publish", str(file), "--check").stdout
    assert "published" in there("publish", str(file)).stdout
    assert "unchanged" in there("publish", str(file)).stdout
    assert "says the same" in there("diff", str(file)).stdout
    titled = file.read_text(encoding="utf-8")
    file.write_text(titled.replace("version: 1", "version: 1\n    title: Leave"), encoding="utf-8")
    assert "its title is not taken" in there("publish", str(file)).stderr
    assert "title" in there("diff", str(file), code=Exit.NO).stdout
    file.write_text(titled, encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace("confirm", "affirm"), encoding="utf-8")
    assert "affirm" in there("diff", str(file), code=Exit.NO).stdout
    assert "nothing was published" in there("publish", str(file), code=Exit.NO).stderr
    file.write_text("domain: [", encoding="utf-8")
    assert there("publish", str(file), code=Exit.NO).stderr
    name = asked.there("definitions", "list", "--json").stdout.split('"name": "leave.')[1].partition('"')[0]
    for words in (("list", "--name", "order"), ("show", "order"), ("show", "order", "--json")):
        assert same("definitions", *words)
    assert same("definitions", "show", "order", "--format", "dot")
    assert "affirm" not in there("definitions", "show", f"leave.{name}").stdout
    there("definitions", "archive", f"leave.{name}", "1")
    assert f"leave.{name}" in there("definitions", "archived").stdout
    there("definitions", "restore", f"leave.{name}", "1")
    assert there("definitions", "show", "ordre", code=Exit.NOT_FOUND).stderr.count("order")


def test_events_and_pauses(asked: Remote) -> None:
    """Something is published once, and a definition is held back for a while, by the server's clock."""
    there, same = asked.there, asked.same
    told = ("events", "publish", "rain", "here", "--data", '{"mm": 3}', "--id", "rain-1", "--ttl", "1h")
    assert there(*told).stdout == there(*told).stdout == "rain-1\n"
    for number in range(3):
        there("events", "publish", "snow", "--id", f"snow-{number}")
    assert "snow-2" not in same("events", "list", "--event", "snow", "--limit", "2")
    assert "snow-2" in same("events", "list", "--event", "snow", "--after", "snow-1")
    assert same("events", "show", "rain-1")
    held = there("pauses", "pause", "--definition", "import", "--for", "1h", "--reason", "audit").stdout
    assert "import" in held
    assert "until" in held
    for words in (("list",), ("list", "--with-ended", "--json")):
        assert "audit" in same("pauses", *words)
    run = asked.stage.begun("order", amount=3)
    there("pause", run, "--for", "1h")
    assert asked.stage.status(run) == "paused"
    there("pauses", "resume", "--definition", "import", "--reason", "done")
    refused = there("pauses", "resume", "--definition", "import", code=Exit.REFUSED)
    assert "there is no such pause" in refused.stderr


def test_schedules_and_batches_are_led(asked: Remote) -> None:
    """A schedule is put, looked at, triggered and deleted; a batch is begun, listed and followed item by item."""
    there, same = asked.there, asked.same
    there(
        "schedules", "put", "nightly", "import", "--cron", "0 2 * * *", "--time-zone", "Europe/Berlin", "--jitter", "1m"
    )
    there("schedules", "put", "poll", "import", "--every", "15m", "--input", '{"row": 1}', "--window", "1h")
    there("schedules", "put", "launch", "import", "--at", "2099-03-31T12:00:00Z")
    assert "nightly" not in same("schedules", "list", "--limit", "2")
    assert "nightly" in same("schedules", "list", "--after", "poll")
    there("schedules", "pause", "nightly", "--reason", "broken")
    assert "broken" in same("schedules", "show", "nightly")
    there("schedules", "resume", "nightly")
    first = there("schedules", "trigger", "poll", "--id", "t-1").stdout
    assert there("schedules", "trigger", "poll", "--id", "t-1").stdout == first
    for words in (("fires", "poll"), ("next", "nightly", "--from", "2026-01-01T00:00:00Z"), ("show", "poll", "--json")):
        assert same("schedules", *words)
    there("schedules", "backfill", "nightly", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")
    there("schedules", "backfill", "nightly", "--stop")
    taken = there("schedules", "delete", "launch", "--revision", "7", code=Exit.CONFLICT)
    assert "it has version 1 by now" in taken.stderr
    there("schedules", "delete", "launch")
    assert "schedule" in there("schedules", "show", "launch", code=Exit.NOT_FOUND).stderr
    inputs = '[{"row": 1}, {"row": 2}, {"row": 3}]'
    there("batch", "begin", "start", "--definition", "import", "--inputs", inputs, "--id", "b-1")
    asked.stage.engine.drain()
    for said in (
        ("list",),
        ("show", "b-1"),
        ("items", "b-1", "--limit", "2"),
        ("items", "b-1", "--after", "2", "--json"),
    ):
        assert same("batch", *said)
    there("batch", "begin", "start", "--inputs", '{"row": 1}', code=Exit.WRONG)
    assert "DONE" in there("batch", "list").stdout


def test_documents_go_their_way(asked: Remote, tmp_path: Path) -> None:
    """A contract and a body are published, a document is created, edited and submitted, with everything that tells of it."""
    there, same = asked.there, asked.same
    there("contracts", "validate", "--ready", "invoice")
    there("contracts", "publish", "--ready", "invoice", "--comment", "to begin with")
    body = tmp_path / "body.yaml"
    body.write_text(BODY + SCENARIOS, encoding="utf-8")
    there("bodies", "validate", str(body))
    draft = there("bodies", "draft", str(body), "--json").stdout.split('"id": "')[1].partition('"')[0]
    there("bodies", "draft", str(body), "--draft", draft, "--revision", "1")
    assert "YES" in there("bodies", "scenarios", "--draft", draft).stdout.upper()
    there("bodies", "publish", draft)
    there("docs", "create", "invoice", '{"number": "R-1", "vendor_id": "V-1", "grand_total": 500}', "--id", "I/1")
    assert "V-1" in there("docs", "show", "invoice", "I/1").stdout
    there("docs", "edit", "invoice", "I/1", '{"grand_total": 700}', "--expected-version", "1")
    there("docs", "check-edit", "invoice", "I/1", '{"grand_total": 800}')
    there("docs", "notify-mutation", "invoice", "I/1", '{"note": "told"}', "--idempotency-key", "n-1")
    there("docs", "submit", "invoice", "I/1")
    assert "amend_only" in same("docs", "check-edit", "invoice", "I/1", '{"grand_total": 9}', code=Exit.NO)
    old = '{"number": "R-9", "vendor_id": "V-1", "grand_total": 9, "currency": "EUR"}'
    there("docs", "adopt", "invoice", "I/9", old, "--status", "draft", "--version", "4", "--reason", "moved")
    assert "4" in same("docs", "versions", "invoice", "I/9")
    gone = same("docs", "cancel-branch", "invoice", "I/9", "0/9", "--reason", "x", code=Exit.REFUSED)
    assert gone == ""
    for told in (("rounds",), ("links",), ("choices",), ("choices", "--json"), ("rounds", "--limit", "1")):
        assert same("docs", told[0], "invoice", "I/1", *told[1:])
    for words in (
        ("contracts", "list"),
        ("contracts", "export", "invoice"),
        ("contracts", "versions", "invoice"),
        ("bodies", "list"),
        ("bodies", "show", "invoice", "--json"),
        ("bodies", "diff", "invoice"),
        ("bodies", "export", "invoice"),
        ("bodies", "templates"),
        ("bodies", "rules"),
        ("bodies", "dry-run", "invoice", '{"grand_total": 500}', "--decide", "manager=rejected"),
        ("docs", "list", "invoice"),
        ("docs", "versions", "invoice", "I/1"),
        ("docs", "diff", "invoice", "I/1", "1", "2"),
        ("docs", "mutations", "invoice", "I/1"),
        ("docs", "audit", "invoice", "I/1", "--json"),
        ("docs", "page", "invoice", "I/1"),
        ("docs", "page", "invoice", "I/1", "--version", "1"),
        ("bodies", "suspensions"),
    ):
        assert there(*words).stdout
    there("docs", "create", "invoice", '{"number": "R-2", "vendor_id": "V-7", "grand_total": 5}', "--id", "I/2")
    there("docs", "redact", "invoice", "I/2", "--field", "vendor_id", "--reason", "erasure")
    assert "V-7" not in there("docs", "show", "invoice", "I/2").stdout
    assert "1-org" in there("bodies", "suspend", "invoice", "1-org", "--reason", "bad").stdout
    assert "bad" in same("bodies", "suspensions", "invoice")
    there("bodies", "lift", "invoice", "1-org", "--reason", "not so bad")
    there("bodies", "move", "invoice", "1-org", "1-org", "--dry-run", "--reason", "x")
    assert "keep all rules" in there("doctor", "--invariants").stdout
    assert same("verify", asked.here.json("list")["items"][0]["id"])


def test_the_plant_is_looked_at(asked: Remote) -> None:
    """Who works, what waits and whether all is well, and maintenance is begun and ended."""
    there = asked.there
    assert "database" in there("doctor", code=Exit.NO).stdout
    there("maintenance", "begin")
    assert "pause" in there("maintenance", "show").stdout
    there("maintenance", "end")
    assert asked.same("projections", "list")


@pytest.mark.row("EO-28", "EO-39")
def test_what_is_behind_the_scenes_is_seen_to(asked: Remote, tmp_path: Path) -> None:
    """Instances, commands that wait, seals, reports, and what receivers have seen: the same there as here."""
    there, same = asked.there, asked.same
    done = asked.stage.begun("import", row=1)
    for number in range(3):
        asked.stage.engine.deciders.submit(Counter, Add(f"c-{number}", 7))
    for words in (
        ("instances", "list"),
        ("instances", "list", "--kind", "saga", "--status", "completed", "--limit", "3"),
        ("instances", "list", "--after", done, "--json"),
        ("instances", "list", "--attribute", "amount=5", "--json"),
        ("inbox", "list"),
        ("inbox", "list", "--limit", "2"),
        ("inbox", "list", "--type", "Add", "--json"),
        ("report", "order", "--since", "2026-01-01", "--until", "2099-01-01T00:00:00+02:00", "--json"),
        ("definitions", "pauses", "ask"),
        ("definitions", "diff", "order", "1"),
        ("dlq", "groups"),
        ("dlq", "groups", "--definition", "import", "--json"),
    ):
        assert same(*words)
    first, second, _ = asked.here.json("inbox", "list")["items"]
    assert str(second["id"]) not in there("inbox", "list", "--after", str(second["id"])).stdout.split()
    there("inbox", "bury", str(first["id"]))
    assert "message" in there("inbox", "bury", str(first["id"]), code=Exit.NOT_FOUND).stderr
    asked.stage.engine.drain()
    (tmp_path / "keys").write_text(f"{done}:1\n{GHOST}:1\n", encoding="utf-8")
    assert "1 lost" in same("doctor", "--after-restore", str(tmp_path / "keys"), code=Exit.NO)
    there("instances", "delete", done)
    assert "instance" in there("instances", "delete", done, code=Exit.NOT_FOUND).stderr
    assert "sealed" in there("seals", "add").stdout
    head = asked.here.json("seals", "head")
    assert same("seals", "head")
    assert "hold" in same("seals", "verify", "--head", str(head["number"]), "--link", head["link"])
    assert "not the one" in same("seals", "verify", "--head", str(head["number"]), "--link", "x", code=Exit.NO)
    assert "projection" in there("projections", "drop", "nothing", code=Exit.NOT_FOUND).stderr
    there("directory", "put", "zoe", "--name", "Zoe")
    assert there("directory", "prefer", "zoe", "--language", "de", "--off", "email").stdout


def test_runs_are_mended(asked: Remote) -> None:
    """A step is completed by hand, data changed, a run failed, forked after a look, and a branch that is not there not ended."""
    there, same = asked.there, asked.same
    run = asked.stage.begun("import", row="x")
    there("complete", run, "row", "--output", '{"imported": 9}', "--reason", "by phone")
    asked.stage.engine.drain()
    assert asked.stage.status(run) == "completed"
    waits = asked.stage.begun("order", amount=2)
    there("change-data", waits, '{"gift": true}', "--reason", "birthday")
    assert asked.here.json("show", waits)["run"]["context"]["gift"] is True
    assert "token" in there("cancel-branch", waits, "0/9", "--reason", "gone", code=Exit.REFUSED).stderr
    assert there("move-back", waits, "--reason", "again", code=Exit.REFUSED).stderr
    assert "charge" in same("fork", waits, "2", "--preview")
    assert "payment" in same("resume-options", waits)
    there("pause", waits)
    asked.there("request-resume", waits, "--reason", "tonight", "--id", "r-1")
    assert "tonight" in same("resume-requests", waits)
    there("resume", waits)
    assert there("reenqueue", waits, "charge", "--reason", "gone", code=Exit.REFUSED).stderr
    assert same("fork", waits, "2", "--preview", "--json")
    assert "--preview" in there("fork", waits, "2", code=Exit.WRONG).stderr
    born = there("fork", waits, "2", "--reason", "once more", "--key", "twin").stdout.strip()
    assert asked.here.json("show", born)["run"]["key"] == "twin"
    asked.stage.is_bank_open = True
    there("fail", waits, "--reason", "bankrupt", "--wait", "50ms", code=Exit.UNAVAILABLE)
    asked.stage.engine.drain()
    assert asked.stage.status(waits) == "failed"


def test_who_came_and_what_they_were_told(asked: Remote) -> None:
    """Sessions are listed and ended, refusals and notifications read, and settings put by whoever has seen them."""
    there, same = asked.there, asked.same
    opened = [asked.stage.engine.acting("zoe").sessions.open(credential="key:x").session.id for _ in range(2)]
    assert opened[0] in same("sessions", "list")
    assert opened[0] not in same("sessions", "list", "--of", "zoe", "--after", opened[0])
    assert opened[0] not in same("sessions", "list", "--of", "nobody", "--json")
    assert there("sessions", "end", opened[0]).stdout == f"session {opened[0]} has ended\n"
    weak = asked.stage.engine.keys.create("weak", actor="weak", capabilities=["execution:read"]).secret
    Standfast()("keys", "list", *asked.place[:2], "--api-key", weak, code=Exit.FORBIDDEN)
    assert "not_permitted" in same("refusals")
    assert same("refusals", "--limit", "1", "--json")
    assert "weak" in same("audit", "--subject", "key")
    assert same("audit", "--limit", "1", "--json")
    there("notifications", "list", "--unread")
    assert "are read now" in there("notifications", "read", "--all").stdout
    assert "--all" in there("notifications", "read", code=Exit.WRONG).stderr
    assert "notification" in there("notifications", "read", "999999", code=Exit.NOT_FOUND).stderr
    assert (
        there("charters", "put", "settings", '{"limit": 5}', "--replaces", "0").stdout == "settings is at version 1\n"
    )
    there("charters", "put", "settings", '{"limit": 6}', "--replaces", "7", code=Exit.CONFLICT)
    there("charters", "put", "settings", "[]", code=Exit.WRONG)
    there("charters", "show", "nonsense", code=Exit.WRONG)
    for words in (("list",), ("show", "settings"), ("show", "settings", "--version", "1", "--json")):
        assert same("charters", *words)


@pytest.mark.row("EO-32")
def test_many_questions_are_answered_in_one_word(asked: Remote) -> None:
    """What became of each is told, and one that is refused keeps no other from being decided."""
    runs = [asked.stage.begun("ask", who=str(number)) for number in range(2)]
    named = [f"{run}:1" for run in runs]
    told = asked.there("tasks", "decide", "confirmed", *named, f"{GHOST}:1", "--json", code=Exit.NO).stdout
    assert told.count('"decided"') == len(runs)
    assert told.count('"refused"') == 1
    third = f"{asked.stage.begun('ask', who='x')}:1"
    asked.there("directory", "put", "bob")
    asked.there("tasks", "ask-also", third, "user:bob", "--reason", "money")
    assert "bob" in asked.same("tasks", "show", third)
    assert asked.there("tasks", "withdraw-decision", third, code=Exit.REFUSED).stderr


def test_dead_letters_are_dealt_with(asked: Remote) -> None:
    """They are shown, put back to work, and found again if that does not help."""
    asked.stage.begun("import", row="z")
    letter = asked.here.json("dlq", "list", "--definition", "import")["items"][-1]["id"]
    asked.same("dlq", "show", str(letter))
    asked.there("dlq", "requeue", str(letter), "--input", '{"row": 3}')
    asked.stage.engine.drain()
    assert asked.same("dlq", "show", str(letter), code=Exit.NOT_FOUND) == ""
    asked.stage.begun("import", row="z")
    (group,) = asked.here.json("dlq", "groups", "--definition", "import")["items"][:1]
    for verb in ("discard", "requeue"):
        begun = asked.there("dlq", verb, "--cause", group["fingerprint"], "--reason", "all of them").stdout
        assert f"verb      {verb}" in begun
        assert group["fingerprint"] in begun
    for words in (("dlq", "requeue", "--cause", "feed"), ("dlq", "groups", "--definition", "imprt")):
        assert asked.same(*words, code=Exit.NOT_FOUND) == ""
        assert asked.there(*words, code=Exit.NOT_FOUND).stderr
    asked.stage.engine.drain()


def test_keys_are_made_shown_once_rotated_and_revoked(asked: Remote) -> None:
    """Against a server as on a database; a secret is printed when it is made, and in no list."""
    made = asked.there(
        "keys", "create", "shop", "--actor", "shop", "--scope", "execution:read", "--for", "1h", "--json"
    )
    assert made.stderr == ""
    odd = asked.there("keys", "create", "odd", "--actor", "x", "--scope", "exection:read", "--scope", "lamps:*").stderr
    assert "asks for 'exection:read'; if that is no word of yours, did you mean 'execution:read'?" in odd
    assert "lamps" not in odd
    secret = made.stdout.split('"secret": "')[1].partition('"')[0]
    key = secret.split("_")[1]
    assert secret not in asked.same("keys", "list", "--json")
    assert key in asked.same("keys", "list", "--limit", "1", "--after", key[:-1])
    turned = asked.there("keys", "rotate", key)
    assert turned.stdout.startswith("sf_")
    assert asked.here.json("keys", "show", key)["revoked_at"] is not None
    refused = asked.there("keys", "rotate", key, code=Exit.REFUSED)
    assert "is revoked" in refused.stderr
    new = turned.stdout.split("_")[1]
    asked.there("keys", "revoke", new)
    outside = Standfast()("list", *asked.place[:2], "--api-key", turned.stdout.strip(), code=Exit.FORBIDDEN)
    assert outside.stdout == ""
    assert "→ say a key that holds by STANDFAST_API_KEY" in outside.stderr
    assert re.search(r"\(trace [0-9a-f]{32}\)", outside.stderr)


def test_errors_are_one_sentence_with_the_same_exit_code(asked: Remote) -> None:
    """What is not there, what cannot be done, what nobody may, and a server that is away; each says what to do."""
    nobody = "0193a2b4-0000-7000-8000-000000000001"
    for words, code in (
        (("show", nobody), Exit.NOT_FOUND),
        (("start", "ordre"), Exit.NOT_FOUND),
        (("list", "--parent", "x"), Exit.WRONG),
        (("dlq", "show", "99999"), Exit.NOT_FOUND),
        (("decide", f"{nobody}:1", "yes"), Exit.NOT_FOUND),
        (("show", "abc"), Exit.WRONG),
        (("decide", "abc", "yes"), Exit.WRONG),
        (("batch", "show", "abc"), Exit.NOT_FOUND),
        (("docs", "rounds", "invoice", "abc"), Exit.NOT_FOUND),
    ):
        assert asked.here(*words, code=code).stderr
        told = asked.there(*words, code=code).stderr.splitlines()
        assert 1 <= len(told) <= 2, told
    near = asked.there("start", "ordre", code=Exit.NOT_FOUND).stderr
    assert "did you mean 'order'?" in near
    assert "the key selects the tenant" in near
    away = Standfast()("list", "--server", "http://127.0.0.1:1", code=Exit.UNAVAILABLE).stderr
    assert "http://127.0.0.1:1 does not answer" in away
    assert "Bearer" not in away


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list", "--server", "http://h", "--database", "sqlite:///x.db"), "leave one of them out"),
        (("list", "--server", "http://h", "--as", "ann"), "user on a server, not --as; leave"),
        (("list", "--server", "http://h", "--tenant", "acme"), "the key determines tenant and user"),
        (("list", "--server", "standfast.example.org"), "is no address of a server"),
        (("list", "--server", "http://[::1"), "is no address of a server"),
        (("list", "--server", "https://"), "is no address of a server"),
        (("list", "--server", "https://ann:hunter2@h"), "the address of a server has no name and no password in it"),
        (("pauses", "list", "--of-tenant", "*", "--server", "http://h"), "leave out --of-tenant"),
        (("docs", "create", "x", "{}", "--app", "shop:app", "--server", "http://h"), "leave out --app"),
    ],
)
def test_what_cannot_be_asked_of_a_server_is_refused(standfast: Standfast, words: tuple[str, ...], told: str) -> None:
    """In a sentence, before anything is sent."""
    assert told in standfast(*words, code=Exit.WRONG).stderr


def test_what_is_said_nearer_to_the_command_counts(
    asked: Remote, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A variable that names a server overrules a database of the file, and a flag that names a database overrules both."""
    _, address, _, secret = asked.place
    Path("standfast.toml").write_text('database = "sqlite:///nowhere.db"\n', encoding="utf-8")
    monkeypatch.setenv("STANDFAST_SERVER", address)
    monkeypatch.setenv("STANDFAST_API_KEY", secret)
    assert Standfast()("list").stdout == asked.here("list").stdout
    assert secret not in Standfast()("config").stdout
    Standfast()("list", "--database", f"sqlite:///{tmp_path}/none.db", code=Exit.NOT_FOUND)


def asked_for() -> set[str]:
    """The calls that commands make, as `subject.call`, but for those of modules that are about this machine."""
    found: set[str] = set()
    for file in Path(cli.__file__).parent.rglob("*.py"):
        if {"remote", "samples"} & set(file.parts) or file.stem in MACHINE:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(value=ast.Attribute(value=ast.Name(id="calls" | "engine"), attr=subject), attr=call):
                    found.add(f"{subject}.{call}")
                case ast.Attribute(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id="calls"), attr="run")), attr=call
                ):
                    found.add(f"run.{call}")
                case ast.Attribute(value=ast.Name(id="run", ctx=ast.Load()), attr=call) if call != "id":
                    found.add(f"run.{call}")
                case _:
                    pass
    return found


@pytest.mark.row("G-30")
def test_every_command_can_be_asked_of_a_server() -> None:
    """Whatever a command calls on a database, it has on a server, so that none is forgotten that comes later."""
    calls = remote.RemoteCalls(Client("http://127.0.0.1:1"))
    subjects = {**vars(calls), "run": calls.run(str(GHOST)), "request": calls.__class__.request}
    gone = {each for each in asked_for() if not _is_there(subjects.get(each.partition(".")[0]), each.partition(".")[2])}
    assert {"reports.of", "run.change_data"} <= asked_for()
    of_databases = {
        "request.partition",
        "request.tenant",
        "service.shared",
        "service.survey",
    }  # Whether one was copied is nobody's business elsewhere.
    assert gone <= of_databases, "give the adapter the call, and the API the route"


def _is_there(subject: object, call: str) -> bool:
    """Whether an adapter has a call of its own: what is missing is refused by whatever name."""
    return any(call in vars(kind) for kind in type(subject).__mro__)


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (remote.RemoteRun, blocking.Run),
        (remote.RemoteRuns, blocking.Runs),
        (remote_people.RemoteTasks, blocking.Tasks),
        (remote_people.RemoteProcesses, blocking.Processes),
        (remote.RemoteDeadLetters, blocking.DeadLetters),
        (remote_publishing.RemoteDefinitions, blocking.Definitions),
        (remote_publishing.RemoteEvents, blocking.Events),
        (remote_publishing.RemotePauses, blocking.Pauses),
        (remote_directory.RemoteDirectory, blocking.Directory),
        (remote_directory.RemoteChains, blocking.Chains),
        (remote_plans.RemoteSchedules, blocking.Schedules),
        (remote_plans.RemoteBatches, blocking.Batches),
        (remote_documents.RemoteDocuments, blocking.Documents),
        (remote_documents.RemoteContracts, blocking.Contracts),
        (remote_documents.RemoteBodies, blocking.Bodies),
        (remote_plant.RemoteAdmin, blocking.Admin),
        (remote_plant.RemoteProjections, blocking.Projections),
        (remote_plant.RemoteInstances, blocking.Instances),
        (remote_plant.RemoteInvariants, blocking.Invariants),
        (remote_plant.RemoteInbox, blocking.Inbox),
        (remote_proofs.RemoteReports, blocking.Reports),
        (remote_access.RemoteSessions, blocking.Sessions),
        (remote_access.RemoteRefusals, blocking.Refusals),
        (remote_access.RemoteNotifications, blocking.Notifications),
        (remote_access.RemoteCharters, blocking.Charters),
        (remote_proofs.RemoteSeals, blocking.Seals),
        (remote_proofs.RemoteWorkflows, blocking.Workflows),
        (remote.RemoteKeys, blocking.Keys),
        (remote.RemoteCalls, Engine),
    ],
)
def test_the_calls_of_a_server_are_those_of_the_engine(kind: type, own: type) -> None:
    """The same names and parameters, as far as commands use them: one that is renamed there is renamed here."""
    for name, call in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_"):
            continue
        theirs = inspect.signature(getattr(own, name)).parameters
        given = inspect.signature(call).parameters.items()
        ours = {each: known for each, known in given if known.kind is not known.VAR_KEYWORD}  # Passed on as they are.
        assert set(ours) <= set(theirs), name
        for each in ours.values():
            assert each.kind == theirs[each.name].kind, (name, each.name)
