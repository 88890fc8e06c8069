"""The garbage collector is left alone, unless the process is the engine's own or a setting says so."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from standfast import Engine
from standfast.engine.common.gc_tuning import OWN_PROCESS, collect_after


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("before", "after"), [(700, 5000), (9000, 9000), (0, 0)])
def test_the_collector_never_looks_more_often_nor_against_the_applications_will(before: int, after: int) -> None:
    """One that the application has set higher, or switched off, stays so."""
    gc.set_threshold(before, 7, 8)
    collect_after(5000)
    assert gc.get_threshold() == (after, 7, 8)


def test_a_process_of_the_engines_own_looks_rarely() -> None:
    """`run` has the process for itself; an engine in somebody else's leaves the collector as it is."""
    with Engine("sqlite://"):
        assert gc.get_threshold()[0] == 700
    ended = threading.Event()
    ended.set()
    Engine("sqlite://").serve(ended)
    assert gc.get_threshold()[0] == OWN_PROCESS


def test_a_process_that_ends_collects_no_classes() -> None:
    """A hook of the package freezes what is alive when the interpreter exits, because collecting struct classes then can crash it."""
    program = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0)); import standfast"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
