"""Files of workflows that are published while the process dies: all of a file is there, or nothing of it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from standfast import ConfigurationError, DefinitionError
from standfast.testing import CrashScenario, ManualEngine, crash_everywhere
from support.crashing import NewStore, checked
from support.engines import Live, Place

_WORKFLOW = """
  - id: {name}
    version: {version}
    steps:
      - {{id: asked, type: approval, assignee: {{role: {role}}}}}
      - {{id: over, type: terminal}}
    transitions:
      - {{from: asked, event: approved, to: over}}
      - {{from: asked, event: rejected, to: over}}
"""
NAMES = ["leave.ask", "leave.cancel", "leave.extend"]


def file(role: str = "boss", version: int = 1, names: list[str] = NAMES) -> str:
    """A file of workflows."""
    workflows = "".join(_WORKFLOW.format(name=name, version=version, role=role) for name in names)
    return f"domain: leave\nworkflows:{workflows}"


def published(engine: ManualEngine) -> list[str]:
    """Which of them there are, by a look at the database."""
    return [each.name for each in engine.definitions.list() if each.name in NAMES]


def whole_or_nothing(engine: ManualEngine) -> None:
    """What every process finds that comes after one that has died."""
    assert published(engine) in ([], NAMES)


SCENARIO = CrashScenario(
    prepare=whole_or_nothing, play=lambda engine: engine.definitions.publish_file(file()), outcome=published
)


def test_a_process_that_dies_has_published_all_of_a_file_or_nothing(new_store: NewStore) -> None:
    """Wherever it dies, the next process finds the whole file or nothing of it, and publishing it again does the rest."""
    report = crash_everywhere(checked(SCENARIO), new_store=new_store)
    assert report.points == 2  # Before it is written and behind it: there is nothing in between.
    assert report.outcome[0] == NAMES  # type: ignore[index]


_DIES = """
import os, signal, sys
from standfast import Engine
from standfast.store.{driver}.admin import definitions

inner, calls = definitions.publish_within, []

def dies(*arguments):
    calls.append(arguments)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return inner(*arguments)

definitions.publish_within = dies
Engine({url!r}).definitions.publish_file({text!r})
"""


def test_a_process_that_is_killed_inside_of_publishing_leaves_nothing(live: Live) -> None:
    """A process that is killed when two of three are written has published none, and the next one publishes all of them."""
    engine = live.engine()
    driver = "sqlite" if live.url.startswith("sqlite") else "postgres"
    program = _DIES.format(driver=driver, url=live.url, text=file())
    dead = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    assert engine.definitions.list() == []
    engine.definitions.publish_file(file())
    assert [each.name for each in engine.definitions.list()] == NAMES


def test_a_file_that_clashes_with_what_another_process_publishes_leaves_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process has published since the file was looked at is refused with the whole file, and what is the same stays."""
    engine, other = place.engine(), place.engine()
    other.definitions.publish_file(file(names=NAMES[:1]))
    other.definitions.publish_file(file("clerk", names=NAMES[2:]))
    with pytest.raises(DefinitionError, match=r"leave\.extend"):
        engine.definitions.publish_file(file())
    monkeypatch.setattr("standfast.features.definitions.calls.prospect_of", lambda *_: _Unseen)
    with pytest.raises(ConfigurationError, match="another content"):
        engine.definitions.publish_file(file())
    assert published(engine) == published(other) == [NAMES[0], NAMES[2]]


class _Unseen:
    """What a file comes to for whoever looks before the other one publishes."""

    what = "new"
