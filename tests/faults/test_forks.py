"""Processes that are forked from one that has an engine: the child is told to open its own, and the parent's goes on."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from support.engines import Live
from support.samples import Puppet, done, note

HEAD = """
    import multiprocessing, os, sys
    sys.path.insert(0, "tests")
    from standfast import Engine, Saga, StoppedError
    from support.engines import QUICK
    from support.samples import Do, Doll, Puppet, done, note

    url, how, has_worker = sys.argv[1], sys.argv[2], sys.argv[3] == "worker"
    engine = Engine(url, settings=QUICK).register(Puppet(note), done)
    if has_worker:
        engine.start_worker()
    futures = engine.futures.deciders
    futures.execute(Puppet, Do("p-1", "before")).result(30)
    futures.state(Puppet, "p-1").result(30)
    futures.submit(Puppet, Do("p-2", "before")).result(30)
    futures.execute(Puppet, Do("p-1", "called back")).then(lambda _: None).result(30)  # So that there is a thread for callbacks.
"""

CHILD = """
    def told(name, call):
        try:
            reply = call()
            error = reply.exception(20) if hasattr(reply, "exception") else None
        except StoppedError as raised:
            error = raised
        assert isinstance(error, StoppedError), (name, error)
        assert "after the fork" in str(error), (name, error)

    def child():
        told("execute", lambda: futures.execute(Puppet, Do("p-1", "child")))
        told("submit", lambda: futures.submit(Puppet, Do("p-1", "child")))
        told("state", lambda: futures.state(Puppet, "p-1"))
        told("get", lambda: engine.as_tenant("acme").futures.deciders.get(Puppet, "p-1"))
        told("backlog", lambda: engine.futures.admin.backlog())
        told("start_worker", lambda: engine.start_worker())
        told("register", lambda: engine.register(Saga("s").step("a", lambda: None).build()))
        assert "after the fork" in engine.health().problems[0], engine.health()
        told("rebuild", lambda: engine.futures.projections.rebuild("model"))
        engine.stop()
        if url.startswith("sqlite"):
            return  # What a process has open when it is forked its child cannot open: SQLite itself loses track of its locks.
        with Engine(url, settings=QUICK).register(Puppet(note), done) as own:
            own.futures.deciders.execute(Puppet, Do("p-3", "child")).then(lambda _: None).result(20)
            assert own.deciders.state(Puppet, "p-3") == ("child",)
"""

TAIL = """
    if how == "multiprocessing":
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(60)
        code = process.exitcode
    else:
        pid = os.fork()
        if not pid:
            try:
                child()
            except BaseException as error:
                print("child:", repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            if how == "exit":
                sys.exit(0)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, code
    futures.execute(Puppet, Do("p-1", "after")).result(30)
    assert futures.state(Puppet, "p-1").result(30)[-1] == "after"
    futures.submit(Puppet, Do("p-2", "after")).result(30)
    assert engine.health().is_healthy, engine.health()
    engine.stop()
    print("went on", flush=True)
"""


@pytest.mark.parametrize(
    ("how", "worker"), [("multiprocessing", "worker"), ("fork", "worker"), ("exit", "worker"), ("fork", "caller")]
)
def test_an_engine_belongs_to_the_process_that_opened_it(live: Live, how: str, worker: str) -> None:
    """A child is told so by every call, at once, and opens its own; however it ends, the engine of its parent goes on."""
    script = textwrap.dedent(HEAD) + textwrap.dedent(CHILD) + textwrap.dedent(TAIL)
    command = [sys.executable, "-c", script, live.url, how, worker]
    ended = subprocess.run(command, timeout=90, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "went on\n"), ended.stderr
    witness = live.engine().register(Puppet(note), done)
    assert witness.deciders.state(Puppet, "p-1") == ("before", "called back", "after")
    if not live.url.startswith("sqlite"):
        assert witness.deciders.state(Puppet, "p-3") == ("child",)
