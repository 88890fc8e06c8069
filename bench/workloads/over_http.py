"""The engine over HTTP: starts with a worker in another process, looks among few and very many runs, streams beside work, and the first answer of `standfast dev`.

Server and worker are the commands that users start. The unit of work of a start is a run, from the first request to the end of the last one;
latency is from a request to its answer.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import psycopg

from bench import web
from bench.callers import CALLERS
from bench.figures import Figures, percentile, percentiles
from bench.rounds import Round
from bench.workloads.filling import fill
from bench.workloads.sagas import SAGAS, STEPS, chain, nothing
from standfast import Engine, Saga
from standfast.store.opening import open_store

STARTS = 5_000
FEW, MANY = 1_000, 1_000_000
OPEN = 500
LOOKS = 2_000
STREAMS = 200
TIMES = 3
OF_ONE = 20
"""Streams that a credential may have open."""
WARM = 64
DBOS_PYTHON = "STANDFAST_DBOS_PYTHON"
_RUNS = "/api/v1/executions"
_HERE = "bench.workloads.over_http"
_LOOK_SECONDS = 0.02
_WORD = 40


def register(engine: Engine) -> None:
    """What the worker has."""
    engine.register(Saga("one").step("step", nothing).build())
    engine.register(chain("ten", STEPS))


def prepare(this: Round) -> None:
    """Make the tables, and publish."""
    open_store(this.url).close()
    with Engine(this.url, threads=False) as engine:
        register(engine)


def preparation(finished: int) -> Callable[[Round], None]:
    """What makes so many runs that have ended, and some that have not."""

    def prepare_many(this: Round) -> None:
        prepare(this)
        with Engine(this.url) as engine:
            register(engine)
            ended = engine.start("one")
            ended.result()
        fill(this, ended.id, this.sized(finished))
        with Engine(this.url, threads=False) as engine:
            for number in range(this.sized(OPEN)):
                engine.start("ten", key=f"open-{number}")

    return prepare_many


def measure_start(this: Round) -> Figures:
    """64 clients start runs, which a worker in another process runs."""
    count = this.sized(STARTS, least=CALLERS)
    key = _key(this)
    with web.server(this.url) as address, web.worker(this.url, f"{_HERE}:register"):
        own = asyncio.run(_started(address, key, count))
    peer = _peer(this, count)
    return Figures(**own, extra={"times_dbos": own["per_second"] / peer} if peer else {})


async def _started(address: str, key: str, count: int) -> dict[str, float]:
    lines = await web.opened(address, key)
    starts: list[tuple[str, str, object]] = [("POST", _RUNS, {"definition": "one"})] * (WARM + count)
    await web.ask_all(lines, starts[:WARM])
    await _ended(lines[0])
    answers = await web.ask_all(lines, starts[WARM:])
    await _ended(lines[0])
    p50, p99 = percentiles(answers.waits)
    return {"per_second": count / (time.perf_counter() - min(answers.begun)), "p50_ms": p50, "p99_ms": p99}


async def _ended(line: web.Line) -> None:
    """Wait until nothing is left to do."""
    while (await line.ask("GET", f"{_RUNS}?definition=one&active=true&limit=1"))["items"]:  # noqa: ASYNC110 - another process does it
        await asyncio.sleep(_LOOK_SECONDS)


def _peer(this: Round, count: int) -> float:
    """How many DBOS does in a second, behind FastAPI on the same server; 0 if nobody says where it is, or on another store."""
    python = os.environ.get(DBOS_PYTHON, "")
    if not python or not this.is_postgres:
        return 0.0
    name = f"{this.url.rpartition('/')[2].partition('?')[0]}_dbos"
    url = this.url.replace(f"/{name.removesuffix('_dbos')}", f"/{name}")
    with psycopg.connect(this.url, autocommit=True) as connection:
        connection.execute(f'create database "{name}"')
        try:
            script = [python, str(web.ROOT / "bench" / "dbos_web.py")]
            with (
                web.program([*script, "work", url], "working on "),
                web.program([*script, "serve", url], "serving at ") as address,
            ):
                return asyncio.run(_enqueued(address, count))
        finally:
            connection.execute(f'drop database "{name}" with (force)')


async def _enqueued(address: str, count: int) -> float:
    lines = await web.opened(address)
    starts: list[tuple[str, str, object]] = [("POST", "/start", {"n": 1})] * (WARM + count)

    async def ended() -> None:
        while await lines[0].ask("GET", "/left"):  # noqa: ASYNC110 - as above
            await asyncio.sleep(_LOOK_SECONDS)

    await web.ask_all(lines, starts[:WARM])
    await ended()
    begun = time.perf_counter()
    await web.ask_all(lines, starts[WARM:])
    await ended()
    return count / (time.perf_counter() - begun)


def measure_looks(this: Round) -> Figures:
    """One client looks at runs by id, and at lists by definition, status and key."""
    key = _key(this)
    with web.server(this.url) as address:
        found = asyncio.run(_looked(address, key, this.sized(LOOKS)))
    every = [wait for each in found.values() for wait in each]
    p50, p99 = percentiles(every)
    lists = [wait for name, each in found.items() if name != "run" for wait in each]
    return Figures(
        per_second=len(every) / sum(every),
        p50_ms=p50,
        p99_ms=p99,
        extra={
            "run_p99_ms": percentile(found["run"], 0.99),
            "list_p99_ms": percentile(lists, 0.99),
            **{f"{name}_p50_ms": percentile(each, 0.5) for name, each in found.items()},
        },
    )


async def _looked(address: str, key: str, count: int) -> dict[str, list[float]]:
    (line,) = await web.opened(address, key, 1)
    page = await line.ask("GET", f"{_RUNS}?limit=500")
    runs = [each["id"] for each in page["items"]]
    kinds: dict[str, Callable[[int], str]] = {
        "run": lambda number: f"{_RUNS}/{runs[number * 7 % len(runs)]}",
        "definition": lambda _: f"{_RUNS}?definition=ten&limit=50",
        "active": lambda _: f"{_RUNS}?definition=ten&active=true&limit=50",
        "status": lambda _: f"{_RUNS}?definition=one&status=completed&limit=50",
        "key": lambda number: f"{_RUNS}?key=done-{number + 1}",
    }
    waits: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(count):
        for name, path in kinds.items():
            begun = time.perf_counter()
            await line.ask("GET", path(number))
            waits[name].append(time.perf_counter() - begun)
    return waits


def measure_streams(this: Round) -> Figures:
    """The sagas of W1 in one process, beside 200 who listen to a server: how fast it goes, and when they hear of a run."""
    many = this.sized(STREAMS, least=5)
    keys = [_key(this) for _ in range(0, many, OF_ONE)]
    with web.server(this.url) as address:
        return asyncio.run(_streamed(this, address, keys, many))


async def _streamed(this: Round, address: str, keys: list[str], many: int) -> Figures:
    count = this.sized(SAGAS)
    alone = await _worked(this.url, count)
    ears = [_Ear() for _ in range(many)]
    listening = [
        await web.listen(address, keys[number // OF_ONE], f"{_RUNS}/events", ear.heard)
        for number, ear in enumerate(ears)
    ]
    await asyncio.gather(*(ear.listens.wait() for ear in ears))
    work = asyncio.create_task(_worked(this.url, count))
    waits: list[float] = []
    (asking,) = await web.opened(address, keys[0], 1)
    while not work.done() or not waits:
        for ear in ears:
            ear.expect()
        run = (await asking.ask("POST", _RUNS, {"definition": "one", "delay_seconds": 3600}))["id"]
        begun = time.perf_counter()
        waits += [at - begun for at in await asyncio.gather(*(ear.told(run) for ear in ears))]
    beside = await work
    for line in listening:
        line.close()
    p50, p99 = percentiles(waits)
    return Figures(
        per_second=beside,
        p50_ms=p50,
        p99_ms=p99,
        extra={"times_alone": beside / alone, "streams": many},
    )


class _Ear:
    """Who listens. It looks for nothing but the run that is asked for: more would take from those who work."""

    def __init__(self) -> None:
        self.listens = asyncio.Event()
        self._awaited = b""
        self._kept: list[tuple[float, bytes]] = []
        """What came while nobody knew yet which run is meant."""
        self._tail = b""
        self._bell = asyncio.Event()
        self._at = 0.0

    def heard(self, piece: bytearray, length: int) -> None:
        """A piece of the stream."""
        self.listens.set()
        border = self._tail + piece[: min(length, _WORD)]  # A word may come in two pieces.
        self._tail = bytes(piece[max(0, length - _WORD) : length])
        if not self._awaited:
            self._kept.append((time.perf_counter(), border + piece[_WORD:length]))
        elif piece.find(self._awaited, 0, length) >= 0 or self._awaited in border:
            self._ring(time.perf_counter())

    def expect(self) -> None:
        """A run is about to be started."""
        self._kept.clear()
        self._bell.clear()

    async def told(self, run: str) -> float:
        """When it heard of a run; TimeoutError for one that it is never told of, such as if it is told to read anew."""
        self._awaited = run.encode()
        for at, piece in self._kept:
            if self._awaited and self._awaited in piece:
                self._ring(at)
        await asyncio.wait_for(self._bell.wait(), 60)
        return self._at

    def _ring(self, at: float) -> None:
        self._at, self._awaited = at, b""
        self._bell.set()


async def _worked(url: str, count: int) -> float:
    """Steps a second of sagas in a process of their own, on the average of some: each takes about a second, and no two are alike."""
    command = (sys.executable, "-m", "bench.workloads.over_http", url, str(count))
    found = []
    for _ in range(TIMES):
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=web.ROOT)
        told, _ = await process.communicate()
        found.append(float(told))
    return fmean(found)


def measure_first_answer(this: Round) -> Figures:
    """From the call of `standfast dev` to its first answer; a new folder each time."""
    took = []
    for _ in range(this.sized(10, least=1)):
        with tempfile.TemporaryDirectory(prefix="standfast-bench-") as folder:
            begun = time.perf_counter()
            command = [
                sys.executable,
                "-u",
                "-m",
                "standfast.cli",
                "dev",
                "--port",
                "0",
                "--folder",
                str(Path(folder) / "data"),
            ]
            with web.program(["sh", "-c", 'exec "$@" 1>&2', "sh", *command], "standfast is at ") as address:
                asyncio.run(_first(address))
                took.append(time.perf_counter() - begun)
    p50, p99 = percentiles(took)
    return Figures(p50_ms=p50, p99_ms=p99)


async def _first(address: str) -> None:
    (line,) = await web.opened(address, count=1)
    await line.ask("GET", _RUNS)


def _key(this: Round) -> str:
    with Engine(this.url, threads=False) as engine:
        return engine.keys.create("bench", actor="bench", capabilities=["*"]).secret


def _work(url: str, count: int) -> None:
    """The process that does W1."""
    from bench.workers import WORKER
    from bench.workloads.sagas import all_at_once, one_by_one

    engine = Engine(url, settings=WORKER).register(chain("ten", STEPS)).start_worker()
    one_by_one(engine, "ten", 3)
    begun = time.perf_counter()
    asyncio.run(all_at_once(engine, "ten", count))
    print(count * STEPS / (time.perf_counter() - begun))
    engine.stop()


if __name__ == "__main__":
    _work(sys.argv[1], int(sys.argv[2]))
