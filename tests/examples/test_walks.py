"""The walks of ARCHITECTURE.md: they name every module on the way, and none that is not there."""

from __future__ import annotations

import gc
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from standfast import Saga
from support.engines import Live, live
from support.samples import Add, Counter

__all__ = ["live"]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "standfast"
PAGES = [ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs" / "internals").glob("*.md"))]
MODULE = re.compile(
    r"(?<![\w./-])(?:app|calls|cli|engine|expressions|features|graph|http|kernel|machine|notifications|outbound|people|store|testing)/[\w…/]+"
)

WORKING = re.compile(r"MainThread|standfast-(committer|handler)")


def walk(title: str) -> str:
    """One walk of the page, up to the next heading of any level."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return re.split(r"\n#+ ", text.partition(f"### {title}\n")[2])[0]


def named(text: str) -> set[str]:
    """The modules that a text names; `…` stands for both drivers."""
    found = {name.rstrip("/…") if name.endswith("…") else name for name in MODULE.findall(text)}
    return {each.replace("…", driver) for each in found for driver in ("sqlite", "postgres")}


def is_there(name: str) -> bool:
    """Whether there is a module or a package of this name."""
    return (SOURCE / f"{name}.py").exists() or (SOURCE / name).is_dir()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_are_named_exist(page: Path) -> None:
    """Who renames a module is told where it is spoken of."""
    names = named(page.read_text(encoding="utf-8"))
    assert sorted(name for name in names if not is_there(name.removesuffix(".py"))) == []


class Trace:
    """The modules of Standfast that were entered by a call and by whoever carries it out; not by the loops beside them."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.is_on = False

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a call."""
        path = frame.f_code.co_filename
        if (
            self.is_on
            and event == "call"
            and path.startswith(str(SOURCE))
            and WORKING.match(threading.current_thread().name)
        ):
            self.modules.add(Path(path).relative_to(SOURCE).with_suffix("").as_posix().removesuffix("/__init__"))


@contextmanager
def traced() -> Iterator[Trace]:
    """Listen to this thread, and to those that are begun in the block."""
    trace = Trace()
    before: Callable[..., object] | None = sys.getprofile()
    gc.disable()  # What earlier tests have left behind is no part of the walk.
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(before)
        gc.enable()
        threading.setprofile(None)


def test_the_walk_of_a_command_leaves_nothing_out(live: Live) -> None:
    """Every module that a command to a remembered instance comes through, on any thread, is named by the walk."""
    with traced() as trace:
        engine = live.engine().register(Counter())
        for _ in range(2):
            engine.deciders.execute(Counter, Add("c-1"))
        trace.is_on = True
        engine.deciders.execute(Counter, Add("c-1"))
        trace.is_on = False
    assert trace.modules
    assert sorted(trace.modules - named(walk("The path of a command, module by module"))) == []


def test_the_walk_of_a_step_leaves_nothing_of_the_machine_out(live: Live) -> None:
    """Every module of the machine that a step comes through is named by the walk."""

    def reserve() -> dict[str, object]:
        return {"reserved": True}

    with traced() as trace:
        engine = live.engine().register(Saga("s").step("a", reserve).step("b", reserve).build()).start_worker()
        trace.is_on = True
        engine.start("s").result()
        trace.is_on = False
    met = {name for name in trace.modules if name.startswith("machine")}
    assert met
    assert sorted(met - named(walk("The path of a step, module by module"))) == []
