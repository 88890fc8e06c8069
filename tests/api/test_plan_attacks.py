"""Attacks by schedules, batches and files of workflows, listed as data: each is refused with the status that it should be, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from api import test_attacks, test_browser_attacks
from api.test_value_attacks import SHAPES, TEXTS
from api.world import ACME, GENEROUS, INVOICE, NORTH, RIVAL, SOUTH, World, furnished
from standfast.http.wire.paging import written

SCHEDULES, BATCHES, DEFINITIONS = "/api/v1/schedules", "/api/v1/batches", "/api/v1/definitions"
FILES = f"{DEFINITIONS}/files"
THEIRS = f"{SCHEDULES}/acme-schedule"
MADE_UP = {"start": "2029-01-01T00:00:00Z", "end": "2029-01-02T00:00:00Z"}
HOURLY = {"workflow": "order", "cron": "0 * * * *"}
YAML = {"content-type": "application/yaml"}
Request = tuple[str, str, dict[str, Any]]


class Scene(NamedTuple):
    """The world, and what acme has in it."""

    world: World
    made: Mapping[str, str]
    began: int
    """Where the feed of all events was before the first attack."""


@pytest.fixture(scope="module")
def scene(world: World) -> Iterator[Scene]:
    """A server over something of everything of acme; a schedule of each tenant, and one of the north, have the name `own`."""
    made = furnished(world)
    for tenant, part in ((ACME, ""), (ACME, NORTH), (RIVAL, "")):
        world.calls(tenant, part).schedules.put("own", "order", cron="0 2 * * *")
    world.engine.drain()
    fortress = World(world.engine, replace(GENEROUS, max_body_bytes=150_000, max_depth=20))
    yield Scene(fortress, made, world.engine.admin.written().next)
    fortress.close()


def tally(scene: Scene) -> object:
    """Everything that an attack could have left behind: events of whatever history, and what is published."""
    found: list[object] = [scene.world.engine.admin.written(after=scene.began).items]
    for tenant in (ACME, RIVAL):
        definitions = scene.world.calls(tenant).definitions
        found += [definitions.archived(), [(each.name, each.version, each.hash) for each in definitions.list()]]
    return found


# -- reaching for another tenant, or another part of one's own

REACHES: dict[str, Callable[[Scene], Request]] = {
    "another's schedule": lambda s: ("GET", THEIRS, {}),
    "its times": lambda s: ("GET", f"{THEIRS}/times", {}),
    "what became of it": lambda s: ("GET", f"{THEIRS}/fires", {}),
    "what became of it, behind a number": lambda s: ("GET", f"{THEIRS}/fires?cursor={written(1)}", {}),
    "the schedule with a NUL": lambda s: ("GET", f"{THEIRS}%00", {}),
    "the schedule behind a tenant's name": lambda s: ("GET", f"{SCHEDULES}/{ACME}%2facme-schedule", {}),
    "the schedule by a path that climbs": lambda s: ("GET", f"{SCHEDULES}/..%2f{ACME}%2facme-schedule", {}),
    "the schedule as a run": lambda s: ("GET", "/api/v1/executions/$schedule", {}),
    "the schedule with a tenant beside it": lambda s: ("GET", f"{THEIRS}?tenant={ACME}", {}),
    "all schedules of a tenant": lambda s: ("GET", f"{SCHEDULES}?tenant={ACME}", {}),
    "all schedules of a part": lambda s: ("GET", f"{SCHEDULES}?partition={NORTH}", {}),
    "schedules of another's workflow": lambda s: ("GET", f"{SCHEDULES}?workflow=acme-own", {}),
    "schedules behind another's run": lambda s: ("GET", f"{SCHEDULES}?cursor={written(s.made['run'])}&workflow=ask", {}),
    "schedules behind a number": lambda s: ("GET", f"{SCHEDULES}?cursor={written(7)}", {}),
    "schedules behind an object": lambda s: ("GET", f"{SCHEDULES}?cursor={written({'tenant': ACME})}", {}),
    "another's schedule deleted": lambda s: ("DELETE", THEIRS, {}),
    "another's schedule deleted, as it was seen": lambda s: ("DELETE", THEIRS, {"headers": {"if-match": '"v1"'}}),
    "another's schedule paused": lambda s: ("POST", f"{THEIRS}/pause", {"json": {"reason": "mine"}}),
    "another's schedule resumed": lambda s: ("POST", f"{THEIRS}/resume", {"json": {"reason": "mine"}}),
    "another's schedule triggered": lambda s: ("POST", f"{THEIRS}/trigger", {"json": {}}),
    "another's schedule triggered with their key": lambda s: (
        "POST", f"{THEIRS}/trigger", {"json": {}, "headers": {"idempotency-key": "acme-1"}},
    ),
    "another's schedule made up for": lambda s: ("POST", f"{THEIRS}/backfill", {"json": MADE_UP}),
    "another's schedule stopped": lambda s: ("POST", f"{THEIRS}/stop-backfills", {}),
    "another's schedule changed, as it was seen": lambda s: (
        "PUT", THEIRS, {"json": HOURLY, "headers": {"if-match": '"v1"'}},
    ),
    "a schedule of another tenant": lambda s: ("PUT", f"{SCHEDULES}/x", {"json": {**HOURLY, "tenant": ACME}}),
    "a schedule of another part": lambda s: ("PUT", f"{SCHEDULES}/x", {"json": {**HOURLY, "partition": NORTH}}),
    "a schedule as somebody else": lambda s: ("PUT", f"{SCHEDULES}/x", {"json": {**HOURLY, "actor": "system"}}),
    "a schedule of another's workflow": lambda s: (
        "PUT", f"{SCHEDULES}/x", {"json": {**HOURLY, "workflow": "acme-own"}},
    ),
    "a schedule of the engine's own": lambda s: (
        "PUT", f"{SCHEDULES}/x", {"json": {**HOURLY, "workflow": "$batch"}},
    ),
    "another's batch": lambda s: ("GET", f"{BATCHES}/{s.made['batch']}", {}),
    "its items": lambda s: ("GET", f"{BATCHES}/{s.made['batch']}/items", {}),
    "its items that were done": lambda s: ("GET", f"{BATCHES}/{s.made['batch']}/items?status=done", {}),
    "the batch in capitals": lambda s: ("GET", f"{BATCHES}/{s.made['batch'].upper()}", {}),
    "the batch as a run": lambda s: ("GET", f"/api/v1/executions/{s.made['batch']}", {}),
    "all batches of a tenant": lambda s: ("GET", f"{BATCHES}?tenant={ACME}", {}),
    "batches behind another's run": lambda s: ("GET", f"{BATCHES}?cursor={written(s.made['run'])}", {}),
    "another's batch cancelled": lambda s: ("POST", f"{BATCHES}/{s.made['batch']}/cancel", {"json": {}}),
    "a batch of another tenant": lambda s: (
        "POST", BATCHES, {"json": {"verb": "start", "definition": "order", "inputs": [{}], "tenant": ACME}},
    ),
    "a batch of starts of another's workflow": lambda s: (
        "POST", BATCHES, {"json": {"verb": "start", "definition": "acme-own", "inputs": [{}]}},
    ),
    "another's definition": lambda s: ("GET", f"{DEFINITIONS}/acme-own", {}),
    "its source": lambda s: ("GET", f"{DEFINITIONS}/acme-own/source", {}),
    "its drawing": lambda s: ("GET", f"{DEFINITIONS}/acme-own/diagram?format=json", {}),
    "another's definition archived": lambda s: ("POST", f"{DEFINITIONS}/acme-own/archive", {"json": {"version": "1"}}),
    "another's definition restored": lambda s: ("POST", f"{DEFINITIONS}/acme-own/restore", {"json": {"version": "1"}}),
    "what all share archived": lambda s: ("POST", f"{DEFINITIONS}/order/archive", {"json": {"version": "1"}}),
    "a file compared with another's": lambda s: (
        "POST", f"{FILES}/diff?workflow=acme-own",
        {"json": {"name": "acme-own", "version": "2", "entry": "a", "nodes": {}, "edges": []}},
    ),
    "a file for another tenant": lambda s: ("POST", f"{FILES}?tenant={ACME}", {"content": b"domain: a", "headers": YAML}),
    "definitions of a tenant": lambda s: ("GET", f"{DEFINITIONS}?tenant={ACME}", {}),
    "what another has archived": lambda s: ("GET", f"{DEFINITIONS}/archived", {}),
}  # fmt: skip
"""Requests of the rival, who may do everything at home, for what is acme's."""


@pytest.mark.row("P-158")
@pytest.mark.parametrize("case", REACHES)
def test_plans_of_other_tenants_are_not_there(scene: Scene, case: str) -> None:
    """By path, query, body, cursor or key: no schedule, batch or definition of acme is shown to its rival, or changed, or started."""
    rival, before = scene.world.client(tenant=RIVAL, actor="eve"), tally(scene)
    method, path, more = REACHES[case](scene)
    answer = rival.ask(method, path, **more)
    assert answer.status_code in {200, 400, 404, 412, 422}, answer.text
    assert method == "GET" or answer.status_code >= 400, answer.text
    assert answer.status_code != 200 or answer.json()["items"] == [], answer.text
    assert "of acme" not in answer.text
    assert tally(scene) == before


PARTS: dict[str, Request] = {
    "a schedule of the whole tenant": ("GET", THEIRS, {}),
    "its fires": ("GET", f"{THEIRS}/fires", {}),
    "a start of it": ("POST", f"{THEIRS}/trigger", {"json": {}}),
    "a pause of it": ("POST", f"{THEIRS}/pause", {"json": {}}),
    "the end of it": ("DELETE", THEIRS, {}),
    "one of another part": ("GET", f"{SCHEDULES}/own", {}),
    "a start of that one": ("POST", f"{SCHEDULES}/own/trigger", {"json": {}}),
    "that one behind its part": ("GET", f"{SCHEDULES}/{NORTH}%2fown", {}),
    "that one by a header": ("GET", f"{SCHEDULES}/own", {"headers": {"x-partition": NORTH}}),
    "a file for the whole tenant": ("POST", FILES, {"content": b"domain: a", "headers": YAML}),
    "a definition for the whole tenant": ("POST", DEFINITIONS, {"json": {"name": "x"}}),
    "a definition out of use for all": ("POST", f"{DEFINITIONS}/acme-own/archive", {"json": {"version": "1"}}),
}  # fmt: skip
"""Requests of somebody who is bound to the south of acme."""


@pytest.mark.parametrize("case", PARTS)
def test_plans_of_other_parts_are_not_there(scene: Scene, case: str) -> None:
    """Who is bound to a part of a tenant neither sees nor starts nor changes what is of another one, or of all."""
    south, before = scene.world.client(actor="sue", partition=SOUTH), tally(scene)
    method, path, more = PARTS[case]
    answer = south.ask(method, path, **more)
    assert answer.status_code in {403, 404}, answer.text
    assert tally(scene) == before


# -- having a plan do what one may not do oneself

BORROWED: dict[str, tuple[str, Callable[[Scene], Request]]] = {
    "runs cancelled by a batch": (
        "execution:cancel", lambda s: ("POST", BATCHES, {"json": {"verb": "cancel", "runs": [s.made["run"]]}}),
    ),
    "all runs of a workflow cancelled by a batch": (
        "execution:cancel", lambda s: ("POST", BATCHES, {"json": {"verb": "cancel", "definition": "ask"}}),
    ),
    "runs aborted by a batch": (
        "execution:abort", lambda s: ("POST", BATCHES, {"json": {"verb": "abort", "runs": [s.made["run"]]}}),
    ),
    "runs started by a batch": (
        "execution:start", lambda s: ("POST", BATCHES, {"json": {"verb": "start", "definition": "order", "inputs": [{}]}}),
    ),
    "runs started by a schedule": ("execution:start", lambda s: ("PUT", f"{SCHEDULES}/x", {"json": HOURLY})),
    "runs started by a schedule that was there": (
        "execution:start", lambda s: ("PUT", f"{SCHEDULES}/own", {"json": HOURLY, "headers": {"if-match": "*"}}),
    ),
    "runs of what is not there": (
        "execution:start", lambda s: ("PUT", f"{SCHEDULES}/x", {"json": {**HOURLY, "workflow": "no-such"}}),
    ),
    "documents created by a schedule": (
        "documents:write", lambda s: ("PUT", f"{SCHEDULES}/x", {"json": {**HOURLY, "workflow": "acme_invoice"}}),
    ),
}  # fmt: skip
"""What takes a permission alone, asked for by somebody who lacks it and may do everything with plans; the permission comes first."""


@pytest.mark.row("C-44", "P-156")
@pytest.mark.parametrize("case", BORROWED)
def test_plans_do_nothing_that_their_maker_may_not(scene: Scene, case: str) -> None:
    """A batch and a schedule take, beside the right to make plans, the permission that what they do takes alone; who lacks it is on record."""
    before, (lacking, made) = tally(scene), BORROWED[case]
    others = {"execution:cancel", "execution:abort", "execution:start", "documents:write"} - {lacking}
    if lacking == "documents:write":
        others -= {"execution:start"}
    planner = scene.world.client(actor="pia", capabilities=("batch:*", "schedule:*", "execution:read", *sorted(others)))
    method, path, more = made(scene)
    answer = planner.ask(method, path, **more)
    assert (answer.status_code, answer.json()["code"]) == (403, "not_permitted"), answer.text
    assert repr(lacking) in answer.json()["detail"]
    kept = scene.world.engine.as_tenant(ACME).refusals.list(limit=1)[0]
    assert (kept.actor, kept.method, kept.path) == ("pia", method, path)
    assert tally(scene) == before


def test_whoever_may_create_documents_has_them_created(scene: Scene) -> None:
    """A schedule of documents takes what documents take, and nothing that is about runs."""
    clerk = scene.world.client(actor="pia", capabilities=("schedule:*", "documents:write"))
    made = clerk.ask("PUT", f"{SCHEDULES}/papers", json={**HOURLY, "workflow": "acme_invoice", "input": INVOICE})
    assert (made.status_code, made.json()["is_document"]) == (200, True), made.text
    assert clerk.ask("DELETE", f"{SCHEDULES}/papers").status_code == 204


# -- plans that nobody can mean

PLANS: dict[str, tuple[dict[str, object], int]] = {
    "a day that never comes": ({"cron": "0 0 30 2 *"}, 422),
    "a day that never comes, elsewhere": ({"cron": "0 0 31 4 *", "time_zone": "Europe/Berlin"}, 422),
    "six fields": ({"cron": "* * * * * *"}, 422),
    "a step of nothing": ({"cron": "*/0 * * * *"}, 422),
    "a range beyond all": ({"cron": "0-99999999999 * * * *"}, 422),
    "two lines": ({"cron": "* * * * *\n* * * * *"}, 422),
    "digits of another script": ({"cron": "\u0663 * * * *"}, 422),
    "a very long cron": ({"cron": ",".join(["*"] * 5000) + " * * * *"}, 422),
    "a cron that is a number": ({"cron": 5}, 400),
    "a cron and an interval": ({"every_seconds": 60}, 422),
    "an interval of nothing": ({"cron": "", "every_seconds": 0}, 422),
    "an interval of almost nothing": ({"cron": "", "every_seconds": 1e-300}, 422),
    "a thousand times a second": ({"cron": "", "every_seconds": 0.001}, 422),
    "an interval below zero": ({"cron": "", "every_seconds": -1}, 400),
    "an interval beyond all": ({"cron": "", "every_seconds": 1e300}, 400),
    "a time zone that climbs": ({"time_zone": "../../etc/passwd"}, 422),
    "a time zone that is a path": ({"time_zone": "/etc/localtime"}, 422),
    "a time zone that is a folder": ({"time_zone": "Europe"}, 422),
    "a time zone with a NUL": ({"time_zone": "UTC\0"}, 422),
    "a very long time zone": ({"time_zone": "a" * 9000}, 422),
    "a time without a zone": ({"cron": "", "at": "2031-01-01T00:00:00"}, 422),
    "a year beyond all": ({"cron": "", "at": "10000-01-01T00:00:00Z"}, 400),
    "an end before the start": ({"start_at": "2032-01-01T00:00:00Z", "end_at": "2031-01-01T00:00:00Z"}, 422),
    "all that was missed, since ever": ({"catch_up": "all"}, 422),
    "an overlap that is none": ({"overlap": "all of them"}, 400),
    "a jitter beyond all": ({"jitter_seconds": 1e300}, 400),
    "an import that is computed": ({"computed": {"a": "__import__('os').system('id')"}}, 422),
    "attributes that are computed": ({"computed": {"a": "input.__class__.__mro__"}}, 422),
    "something deep that is computed": ({"computed": {"a": "(" * 500 + "1" + ")" * 500}}, 422),
    "something long that is computed": ({"computed": {"a": "1 + " * 20_000 + "1"}}, 422),
    "something computed that is none": ({"computed": {"a": 1}}, 400),
    "a note without end": ({"note": "x" * 100_000}, 422),
    "an input that is deep": ({"input": {"a": [[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]}}, 400),
    "a workflow that climbs": ({"workflow": "../order"}, 404),
    "a workflow without a name": ({"workflow": ""}, 422),
}  # fmt: skip
"""What schedules say that cannot be kept, and what is answered."""


@pytest.mark.parametrize("case", PLANS)
def test_plans_that_nobody_can_mean_are_refused(scene: Scene, case: str) -> None:
    """A schedule that never comes, comes without end, or computes what it may not, is refused with a problem that says so."""
    before, (wrong, status) = tally(scene), PLANS[case]
    answer = scene.world.client().ask("PUT", f"{SCHEDULES}/wrong", json={**HOURLY, **wrong})
    assert answer.status_code == status, answer.text
    assert answer.json()["remedy"]
    assert "root:" not in answer.text
    assert tally(scene) == before


EDGES: dict[str, Request] = {
    "a name with a NUL": ("PUT", f"{SCHEDULES}/a%00b", {"json": HOURLY}),
    "a very long name": ("PUT", f"{SCHEDULES}/{'a' * 3000}", {"json": HOURLY}),
    "a name with a header in it": ("GET", f"{SCHEDULES}/a%0d%0aset-cookie:%20x=1", {}),
    "a condition that is none": ("PUT", f"{SCHEDULES}/own", {"json": HOURLY, "headers": {"if-match": '"mine"'}}),
    "a condition beyond all": ("DELETE", f"{SCHEDULES}/own", {"headers": {"if-match": f'"v{"9" * 30}"'}}),
    "a condition on a pause": ("POST", f"{SCHEDULES}/own/pause", {"json": {}, "headers": {"if-match": '"v1"'}}),
    "a period backwards": ("POST", f"{SCHEDULES}/own/backfill", {"json": {"start": MADE_UP["end"], "end": MADE_UP["start"]}}),
    "a period without a zone": (
        "POST", f"{SCHEDULES}/own/backfill", {"json": {"start": "2029-01-01T00:00:00", "end": "2029-01-02T00:00:00"}},
    ),
    "a period of all times": (
        "POST", f"{SCHEDULES}/own/backfill", {"json": {"start": "0001-01-01T00:00:00Z", "end": "9999-12-31T23:59:59Z"}},
    ),
    "all times at once": (
        "POST", f"{SCHEDULES}/own/backfill",
        {"json": {"start": "0001-01-01T00:00:00Z", "end": "9999-12-31T23:59:59Z", "at_once": True}},
    ),
    "more times than there are": ("GET", f"{SCHEDULES}/own/times?limit=100000", {}),
    "times without a zone": ("GET", f"{SCHEDULES}/own/times?after=2031-01-01T00:00:00", {}),
    "times before the first": ("GET", f"{SCHEDULES}/own/times?after=0001-01-01T00:00:00%2B14:00", {}),
    "fires below zero": ("GET", f"{SCHEDULES}/own/fires?cursor={written(-1)}", {}),
    "fires beyond all": ("GET", f"{SCHEDULES}/own/fires?cursor={written(2**70)}", {}),
    "a key of a trigger with a tab": (
        "POST", f"{SCHEDULES}/own/trigger", {"json": {}, "headers": {"idempotency-key": "a\tb"}},
    ),
    "two keys of a trigger": (
        "POST", f"{SCHEDULES}/own/trigger", {"json": {}, "headers": [("idempotency-key", "a"), ("idempotency-key", "b")]},
    ),
    "a batch of nothing": ("POST", BATCHES, {"json": {"verb": "cancel"}}),
    "a batch with a verb that is none": ("POST", BATCHES, {"json": {"verb": "drop", "definition": "order"}}),
    "a batch of what is no run": ("POST", BATCHES, {"json": {"verb": "cancel", "runs": ["' or 1=1 --"]}}),
    "a batch of a letter below zero": ("POST", BATCHES, {"json": {"verb": "requeue", "letters": [-1]}}),
    "a batch of a letter beyond all": ("POST", BATCHES, {"json": {"verb": "requeue", "letters": [2**70]}}),
    "a batch of runs and letters": (
        "POST", BATCHES, {"json": {"verb": "cancel", "runs": ["0193a2b4-0000-7000-8000-000000000001"], "letters": [1]}},
    ),
    "a batch that is endlessly fast": ("POST", BATCHES, {"json": {"verb": "cancel", "definition": "order", "per_second": 1e300}}),
    "a batch that goes backwards": ("POST", BATCHES, {"json": {"verb": "cancel", "definition": "order", "per_second": -1}}),
    "a batch that is followed for ever": (
        "POST", BATCHES, {"json": {"verb": "cancel", "definition": "order", "follow_seconds": 1e300}},
    ),
    "a batch whose id has a NUL": (
        "POST", BATCHES, {"json": {"verb": "start", "definition": "order", "inputs": [{}], "batch_id": "a\0b"}},
    ),
    "a batch whose id is very long": (
        "POST", BATCHES, {"json": {"verb": "start", "definition": "order", "inputs": [{}], "batch_id": "a" * 5000}},
    ),
    "a batch of a status that is none": (
        "POST", BATCHES, {"json": {"verb": "cancel", "definition": "order", "status": ["' or 1=1 --"]}},
    ),
    "items of a status that is none": ("GET", f"{BATCHES}/x/items?status=hacked", {}),
}  # fmt: skip
"""Requests of somebody who may do everything, with something wrong in them."""


@pytest.mark.parametrize("case", EDGES)
def test_odd_requests_about_plans_change_nothing(scene: Scene, case: str) -> None:
    """What is wrong in itself is refused as the client's mistake; nothing is stored, and nobody can inject a header."""
    before, (method, path, more) = tally(scene), EDGES[case]
    answer = scene.world.client().ask(method, path, **more)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["code"]
    assert "set-cookie" not in answer.headers
    assert tally(scene) == before


# -- files

STEPS = "steps: [{id: o, type: terminal}]"
CONTENTS: dict[str, bytes] = {
    "nothing": b"",
    "nothing but a comment": b"#" * 100_000,
    "no text": b"\xff\xfe\x00",
    "UTF-16": "domain: a".encode("utf-16"),
    "a NUL": b"domain: a\x00",
    "a billion laughs": b"a: &a [x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b]\ndomain: d\nworkflows: *c\n",
    "a billion laughs of names": b"a: &a {x: 1}\nb: &b {<<: *a, y: *a}\ndomain: d\nworkflows: [*b, *b]\n",
    "itself": b"domain: d\nworkflows: &a [*a]\n",
    "an alias of nothing": b"domain: d\nworkflows: *nobody\n",
    "a command of the machine": b"!!python/object/apply:os.system ['id']",
    "a name of the machine": b"domain: !!python/name:os.system\nworkflows: []",
    "an object of the machine": b"domain: !!python/object/new:subprocess.Popen [id]\nworkflows: []",
    "a tag of one's own": b"domain: !mine d\nworkflows: []",
    "bytes in it": b"domain: !!binary aGFsbG8=\nworkflows: []",
    "deep lists": b"- " * 5000 + b"x",
    "deep names": b"\n".join(b" " * each + b"a:" for each in range(500)),
    "deep questions": b"? " * 5000 + b"x",
    "deep lists without an end": b"[" * 20,
    "a text without an end": b'"' + b"a" * 100_000,
    "a name twice": b"domain: a\ndomain: b\nworkflows: []",
    "two files in one": b"domain: a\n---\ndomain: b\n",
    "a directive": b"%TAG ! tag:yaml.org,2002:python/\n---\n!name:os.system x",
    "a number of ten thousand digits": b"domain: d\nworkflows:\n  - {id: a.b, version: " + b"9" * 10_000 + b"}\n",
    "a number in sixties": b"domain: d\nworkflows: " + b"1:" * 5000 + b"1",
    "a day that there is not": b"domain: 2001-99-99\nworkflows: []",
    "ten thousand workflows of nothing": b"domain: d\nworkflows:\n" + b"  - {}\n" * 10_000,
    "five thousand anchors": b"".join(b"a%d: &a%d 1\n" % (each, each) for each in range(5000)),
    "a workflow without an id": f"domain: d\nworkflows:\n  - {{version: 1, {STEPS}}}\n".encode(),
    "a workflow twice": b"domain: d\nworkflows:\n" + f"  - {{id: a.b, version: 1, {STEPS}}}\n".encode() * 2,
    "an id with a NUL": f'domain: d\nworkflows:\n  - {{id: "a\\0b", version: 1, {STEPS}}}\n'.encode(),
    "an id that is a list": f"domain: d\nworkflows:\n  - {{id: [a], version: 1, {STEPS}}}\n".encode(),
    "an id that is very long": f"domain: d\nworkflows:\n  - {{id: {'a' * 5000}, version: 1, {STEPS}}}\n".encode(),
    "an id that is a decider's of the engine": f"domain: d\nworkflows:\n  - {{id: $schedule, version: 1, {STEPS}}}\n".encode(),
    "an id that the engine keeps for itself": f"domain: d\nworkflows:\n  - {{id: $x, version: 1, {STEPS}}}\n".encode(),
    "a sound one before such an id": (
        f"domain: d\nworkflows:\n  - {{id: a.b, version: 1, {STEPS}}}\n  - {{id: $x, version: 1, {STEPS}}}\n".encode()
    ),
}
"""Files that are none, or that do to whoever reads them what a file should not."""


@pytest.mark.parametrize("case", CONTENTS)
def test_files_do_nothing_to_whoever_reads_them(scene: Scene, case: str) -> None:
    """A file that unfolds, nests, calls or repeats is refused with its place, by whichever way it comes, and nothing of it is published."""
    before, client, more = tally(scene), scene.world.client(), {"content": CONTENTS[case], "headers": YAML}
    refused = client.ask("POST", FILES, **more)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_definition"), refused.text[:500]
    assert "uid=" not in refused.text
    assert client.ask("POST", f"{FILES}/validate", **more).json()["is_valid"] is False
    assert client.ask("POST", f"{FILES}/diff", **more).status_code in {404, 422}
    assert tally(scene) == before


CARRIED: dict[str, tuple[dict[str, Any], int]] = {
    "a page": ({"content": b"domain: a", "headers": {"content-type": "text/html"}}, 415),
    "a form": ({"data": {"domain": "a"}}, 415),
    "files": ({"files": {"file": b"domain: a"}}, 415),
    "an archive": ({"content": b"domain: a", "headers": {"content-type": "application/zip"}}, 415),
    "YAML of another kind": ({"content": b"domain: a", "headers": {"content-type": "application/x-yaml"}}, 415),
    "more than is taken": ({"content": b"#" * 200_000, "headers": YAML}, 413),
    "JSON that is deep": ({"content": b'{"a":' * 50 + b"1" + b"}" * 50, "headers": {"content-type": "application/json"}}, 400),
    "JSON as YAML that is deep": ({"content": b'{"a":' * 50 + b"1" + b"}" * 50, "headers": YAML}, 400),
    "JSON that is none": ({"content": b"{", "headers": {"content-type": "application/json"}}, 400),
    "a file by its path": ({"params": {"path": "/etc/passwd"}, "content": b"a: 1", "headers": YAML}, 400),
    "a file that only might be checked": ({"params": {"check": "maybe"}, "content": b"a: 1", "headers": YAML}, 400),
    "a file with a condition": ({"content": b"a: 1", "headers": {**YAML, "if-match": '"v1"'}}, 400),
}  # fmt: skip


@pytest.mark.parametrize("case", CARRIED)
def test_files_come_as_what_they_are(scene: Scene, case: str) -> None:
    """A file of another kind, too large, too deep, or by an address of the server's own disk is not read."""
    before, (more, status) = tally(scene), CARRIED[case]
    answer = scene.world.client().ask("POST", FILES, **more)
    assert answer.status_code == status, answer.text
    assert "root:" not in answer.text
    assert tally(scene) == before


GRAPH: dict[str, Any] = {
    "version": "1",
    "kind": "saga",
    "entry": "a",
    "nodes": {"a": {"id": "a", "op": {"op": "task", "work": {"handler": "a"}}}},
    "edges": [],
}
GRAPHS: dict[str, dict[str, Any]] = {
    "another content under a version of one's own": {"name": "acme-own"},
    "a name that is a decider's of the engine": {"name": "$schedule"},
    "a name that the engine keeps for itself": {"name": "$x"},
    "a name with a NUL": {"name": "a\0b"},
    "a very long name": {"name": "a" * 5000},
    "a name that is a list": {"name": ["a"]},
    "no nodes": {"name": "a", "nodes": {}},
    "an entry that is not there": {"name": "a", "entry": "b"},
    "an edge to nowhere": {"name": "a", "edges": [{"source": "a", "target": "../b"}]},
    "a field of another": {"name": "a", "tenant": ACME},
    "a call of another's workflow": {
        "name": "a",
        "nodes": {"a": {"id": "a", "op": {"op": "call", "definition": "rival-own", "version": "1"}}},
    },
}
"""Workflows as data that cannot be, or not beside what there is."""


@pytest.mark.parametrize("case", GRAPHS)
def test_workflows_that_cannot_be_are_the_clients_mistake(scene: Scene, case: str) -> None:
    """A workflow that cannot be published, by itself or beside what there is, is refused as such; it neither fails the server nor stays behind."""
    before, client = tally(scene), scene.world.client()
    answer = client.post(DEFINITIONS, {**GRAPH, **GRAPHS[case]})
    assert answer.status_code in {400, 422}, answer.text
    assert client.post(f"{DEFINITIONS}/validate", {**GRAPH, **GRAPHS[case]}).status_code in {200, 400, 422}
    assert tally(scene) == before


def test_a_batch_over_runs_of_another_does_nothing_to_them(scene: Scene) -> None:
    """Who names runs or dead letters of another tenant in a batch is told of each that there is none; theirs go on."""
    rival, theirs = scene.world.client(tenant=RIVAL, actor="eve"), scene.world.calls(ACME)
    before = [(each.id, each.status, each.updated_at) for each in theirs.runs.list(limit=1000).items]
    for asked in (
        {"verb": "cancel", "runs": [scene.made["run"]]},
        {"verb": "requeue", "letters": [int(scene.made["letter"])]},
        {"verb": "cancel", "definition": "acme-own"},
    ):
        batch = rival.post(BATCHES, asked)
        assert batch.status_code == 202, batch.text
        scene.world.engine.drain()
        told = rival.get(f"{BATCHES}/{batch.json()['id']}").json()["counts"]
        assert (told["done"], told["accepted"]) == (0, 0)
        items = rival.get(f"{BATCHES}/{batch.json()['id']}/items")
        assert {each["status"] for each in items.json()["items"]} <= {"refused", "failed"}
        assert "of acme" not in items.text
    assert [(each.id, each.status, each.updated_at) for each in theirs.runs.list(limit=1000).items] == before


@pytest.mark.row("P-144")
def test_keys_of_triggers_and_batches_stay_at_home(scene: Scene) -> None:
    """The same Idempotency-Key is another start, and another batch, for another tenant and for another part of the same one."""
    clients = [
        scene.world.client(),
        scene.world.client(actor="nora", partition=NORTH),
        scene.world.client(tenant=RIVAL, actor="eve"),
    ]
    key, batch = {"idempotency-key": "shared"}, {"verb": "start", "definition": "order", "inputs": [{}]}
    for path, body, name in ((f"{SCHEDULES}/own/trigger", {}, "run"), (BATCHES, batch, "instance")):
        first, again = ([each.post(path, body, headers=key).json()[name] for each in clients] for _ in range(2))
        assert len(set(first)) == len(clients)
        assert first == again


@pytest.mark.parametrize(
    "plan",
    [
        {"cron": "", "at": "9999-12-31T23:59:59Z", "jitter_seconds": 3e9},
        {"start_at": "9999-12-31T23:00:00Z", "jitter_seconds": 3e9},
        {"start_at": "0001-01-01T00:00:00Z", "catch_up": "all", "window_seconds": 3e9},
        {"start_at": "0001-01-01T00:00:00Z", "time_zone": "America/New_York"},
        {"cron": "", "every_seconds": 3e9, "start_at": "9999-12-31T23:00:00Z"},
    ],
)
def test_plans_at_the_ends_of_the_calendar_break_nothing(scene: Scene, plan: dict[str, object]) -> None:
    """A schedule that begins with the first day of all, or whose chance leads beyond the last, is kept like any other, and looked at, and made up for."""
    client, path = scene.world.client(), f"{SCHEDULES}/edge"
    assert client.ask("PUT", path, json={**HOURLY, **plan}).status_code == 200
    for first, last in (
        ("0001-01-01T00:00:00Z", "0001-01-01T06:00:00Z"),
        ("9999-12-31T20:00:00Z", "9999-12-31T23:59:59Z"),
    ):
        assert client.get(f"{path}/times?after={first}").status_code == 200
        assert client.post(f"{path}/backfill", {"start": first, "end": last}).status_code == 200
        assert client.ask("POST", f"{path}/stop-backfills").status_code == 200
    assert client.ask("DELETE", path).status_code == 204


def test_there_are_enough_attacks() -> None:
    """At least five hundred attacks on the edge are listed."""
    here: tuple[Mapping[str, object], ...] = (REACHES, PARTS, BORROWED, PLANS, EDGES, CONTENTS, CARRIED, GRAPHS)
    listed: list[Mapping[str, object]] = [*here, *test_browser_attacks.LISTED, *test_attacks.LISTED, SHAPES, TEXTS]
    assert sum(len(each) for each in listed) >= 500
