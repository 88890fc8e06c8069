"""Documents: edits of drafts among few and among very many, lists, the way from the draft to active, and what a refusal costs.

The documents are invoices by the contract that comes with Standfast, approved by one person and posted by an action whose handler writes in
the commit. Drafts are made by another process, so that each is loaded first. The many that lie around are copies of the rows of one that is
active.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from bench.callers import call_all
from bench.figures import Figures, percentile, percentiles
from bench.rounds import Round
from bench.watching import Commits
from bench.workloads.filling import fill
from bench.workloads.waiting import IN_FLIGHT, WARM, settle
from standfast import Actor, Engine, RejectedError, RequestContext, StepContext
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import ready_contract
from standfast.graph.definition import Definition
from standfast.kernel.ids import InstanceId

FEW, MANY, MANY_IN_A_FILE = 1_000, 1_000_000, 100_000
ALONE = 1_000
"""Edits that one caller makes."""
DRAFTS = 4_000
"""Edits that many make at once."""
INVOICES = 2_000
"""Those that are brought from the draft to active."""
TIMES = 200
WARM_UP = 5
NODES = 200
"""Steps that an organisation has put into one slot."""
COMPILED = 20

CLERK = Actor(id="cleo", capabilities=frozenset({"invoice.*", "execution:read"}))
BOSS = Actor(id="bea")
GIVEN: dict[str, object] = {
    "number": "R-1",
    "vendor_id": "V-1",
    "grand_total": 40_000,
    "cost_center": "17",
    "note": "as agreed",
}
BODY = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    nodes:
      - {id: check, type: approval, approvers: [{user: bea}]}
    edges:
      - {from: in, to: check}
      - {from: check, to: out, on: approved}
  "slot:approved_to_active":
    nodes:
      - {id: post, type: action, action: invoice.post, run_as: system}
"""

LISTS: dict[str, Callable[[Engine], object]] = {
    "type": lambda engine: engine.documents.list("invoice"),
    "active": lambda engine: engine.documents.list("invoice", status="active"),
    "draft": lambda engine: engine.documents.list("invoice", status="draft"),
    "requester": lambda engine: engine.documents.list("invoice", requester="cleo"),
    "draft_of_requester": lambda engine: engine.documents.list("invoice", status="draft", requester="cleo"),
}


def preparation(stored: int, drafts: int) -> Callable[[Round], None]:
    """What makes so many documents that are active, and so many drafts."""

    def prepare(this: Round) -> None:
        with opened(this) as engine:
            first = _adopted(engine, "first")
        most = stored if this.is_postgres else min(stored, MANY_IN_A_FILE)
        fill(this, first, this.sized(most))
        with opened(this) as engine:
            numbers = iter(range(WARM + this.sized(drafts, least=WARM)))
            while some := list(islice(numbers, IN_FLIGHT)):
                making = engine.futures.acting(by(CLERK)).documents
                settle([making.create("invoice", GIVEN, id=f"draft-{number}") for number in some])

    return prepare


def measure_mutate_in_turn(this: Round) -> Figures:
    """One caller alone: what an edit costs."""
    with opened(this) as engine:
        calls, waits = engine.acting(by(CLERK)).documents, []
        for number, name in enumerate(_drafts(engine)):
            begun = time.perf_counter()
            calls.mutate("invoice", name, {"grand_total": number})
            if number >= WARM:
                waits.append(time.perf_counter() - begun)
    p50, p99 = percentiles(waits)
    return Figures(per_second=len(waits) / sum(waits), p50_ms=p50, p99_ms=p99)


def measure_mutate(this: Round) -> Figures:
    """Many callers, each of whom edits one draft after the other."""
    with opened(this) as engine:
        calls, drafts = engine.acting(by(CLERK)).documents, _drafts(engine)

        def edit(name: str) -> None:
            calls.mutate("invoice", name, {"grand_total": 70_000, "note": "a typo"}, expected_version=1)

        call_all(edit, drafts[:WARM])
        commits = Commits(engine)
        answers = call_all(edit, drafts[WARM:])
        assert all(calls.get("invoice", name).version == 2 for name in drafts[:: max(1, len(drafts) // 50)]), "lost"
    p50, p99 = percentiles(answers.waits)
    shared = commits.count / len(answers.begun)
    return Figures(per_second=answers.per_second, p50_ms=p50, p99_ms=p99, commits_per_step=shared)


def measure_approval(this: Round) -> Figures:
    """From the draft to active: submitted by one person, approved by another, posted by the worker of the same process."""
    with opened(this) as engine:
        clerk, boss = engine.acting(by(CLERK)), engine.acting(by(BOSS))
        drafts = _drafts(engine)

        def bring(name: str) -> None:
            run = clerk.documents.transition("invoice", name, "submit").instance
            (task,) = engine.run(run).tasks()
            boss.tasks.decide(task, "approved", document_version=task.document_version)

        call_all(bring, drafts[:WARM])
        wait_until(lambda: _are_through(engine))
        begun = time.perf_counter()
        answers = call_all(bring, drafts[WARM:])
        wait_until(lambda: _are_through(engine))
        took = time.perf_counter() - begun
        assert all(
            clerk.documents.get("invoice", name).status == "active" for name in drafts[:: max(1, len(drafts) // 50)]
        )
    p50, p99 = percentiles(answers.waits)
    return Figures(per_second=len(answers.begun) / took, p50_ms=p50, p99_ms=p99)


def measure_refusals(this: Round) -> Figures:
    """What it costs to be refused, beside an edit that is accepted: one of each in turn, by one caller."""
    refused, accepted = [], []
    with opened(this) as engine:
        calls = engine.acting(by(CLERK)).documents
        drafts = _drafts(engine)
        locked = drafts[: len(drafts) // 2]
        for name in locked:
            run = calls.transition("invoice", name, "submit").instance
            (task,) = engine.run(run).tasks()
            engine.acting(by(BOSS)).tasks.decide(task, "approved", document_version=task.document_version)
        wait_until(lambda: all(calls.get("invoice", name).status == "active" for name in locked[-WARM:]))
        for number, (one, other) in enumerate(zip(locked, drafts[len(locked) :], strict=False)):
            begun = time.perf_counter()
            try:
                calls.mutate("invoice", one, {"grand_total": number})
            except RejectedError:
                middle = time.perf_counter()
            else:
                raise AssertionError("an edit of what is locked was accepted")
            calls.mutate("invoice", other, {"grand_total": number})
            if number >= WARM_UP:
                refused.append(middle - begun)
                accepted.append(time.perf_counter() - middle)
    p50, p99 = percentiles(refused)
    ratio = percentile(refused, 0.5) / percentile(accepted, 0.5)
    extra = {"accepted_p50_ms": percentile(accepted, 0.5), "times_accepted": ratio}
    return Figures(per_second=len(refused) / sum(refused), p50_ms=p50, p99_ms=p99, extra=extra)


def measure_lists(this: Round) -> Figures:
    """One list after the other."""
    waits: dict[str, list[float]] = {name: [] for name in LISTS}
    with opened(this) as engine:
        for number in range(WARM_UP + this.sized(TIMES)):
            for name, ask in LISTS.items():
                begun = time.perf_counter()
                ask(engine)
                if number >= WARM_UP:
                    waits[name].append(time.perf_counter() - begun)
    everything = [wait for each in waits.values() for wait in each]
    p50, p99 = percentiles(everything)
    return Figures(
        per_second=len(everything) / sum(everything),
        p50_ms=p50,
        p99_ms=p99,
        extra={
            "p95_ms": percentile(everything, 0.95),
            "slowest_p95_ms": max(percentile(each, 0.95) for each in waits.values()),
            **{f"{name}_p50_ms": percentile(each, 0.50) for name, each in waits.items()},
        },
    )


def measure_compiling(this: Round) -> Figures:
    """An envelope and a body with many steps become an effective workflow and its graph."""
    contract = ready_contract("invoice")
    body = read_body(_large(this.sized(NODES)))
    envelope, took = generate_envelope(contract), []
    for _ in range(COMPILED):
        begun = time.perf_counter()
        graph_of(compile_effective(envelope, body))
        took.append(time.perf_counter() - begun)
    p50, p99 = percentiles(took)
    return Figures(per_second=COMPILED / sum(took), p50_ms=p50, p99_ms=p99)


def _large(nodes: int) -> str:
    """A body with so many steps in a row, each of which keeps a value."""
    steps = [
        f"      - {{id: n{each}, type: script, formula: entity.grand_total, into: v{each}}}" for each in range(nodes)
    ]
    ways = [f"      - {{from: n{each}, to: n{each + 1}}}" for each in range(nodes - 1)]
    lines = [
        "base: {entity_type: invoice, envelope_version: 1}",
        "slots:",
        '  "slot:submitted_to_approved":',
        "    nodes:",
        *steps,
        "    edges:",
        *ways,
    ]
    return "\n".join(lines)


def _are_through(engine: Engine) -> bool:
    """Whether none is on its way any more."""
    return not engine.documents.list("invoice", status="submitted", limit=1).items


def wait_until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until something holds."""
    end, tick = time.monotonic() + seconds, threading.Event()
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"it did not come about in {seconds} s")
        tick.wait(0.01)


def _adopted(engine: Engine, name: str) -> InstanceId:
    """An invoice that is active, as one that was taken over from another system; its run."""
    given = {**GIVEN, "currency": "EUR", "is_large": False, "posting_ref": f"GL-{name}"}
    return engine.documents.adopt("invoice", name, given, status="active").instance


def _drafts(engine: Engine) -> list[str]:
    """The ids of all drafts."""
    found: list[str] = []
    cursor = None
    while True:
        page = engine.documents.list("invoice", status="draft", cursor=cursor, limit=1000)
        found += [each.id for each in page.items]
        cursor = page.next
        if cursor is None:
            return found[::-1]


def by(actor: Actor) -> RequestContext:
    """A call of somebody."""
    return RequestContext(tenant="default", actor=actor)


@contextmanager
def opened(this: Round) -> Iterator[Engine]:
    """An engine with a worker that knows invoices."""
    contract = ready_contract("invoice")
    body = read_body(BODY)
    with Engine(this.url) as engine:
        engine.register(Definition(graph=graph_of(compile_effective(generate_envelope(contract), body))))

        @engine.handler("invoice.post")
        def post(context: StepContext, document: dict[str, object]) -> dict[str, object]:
            assert context.connection is not None
            return {"posting_ref": f"GL-{document['id']}"}

        yield engine
