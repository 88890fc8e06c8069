"""The stories of `scenarios`, played to the end, and played again with the process stopped at every point on the way."""

from __future__ import annotations

import pytest

from app.sagas.scenarios import STORIES, ended
from standfast.testing import crash_everywhere
from support.crashing import NewStore, checked, tried
from support.engines import Place


@pytest.mark.row("F-248", "F-241", "F-238")
@pytest.mark.parametrize("name", STORIES)
def test_a_story_ends_as_it_should(place: Place, name: str) -> None:
    """Each story comes to the end that is written beside it, with nothing left to do."""
    story, engine = STORIES[name], place.engine()
    story.prepare(engine)
    story.play(engine)
    assert ended(engine) == story.ending
    assert engine.admin.backlog() == []


@pytest.mark.parametrize("name", STORIES)
def test_a_story_that_is_asked_for_twice_happens_once(place: Place, name: str) -> None:
    """Clients that ask for everything again, on another engine, change nothing."""
    story = STORIES[name]
    for _ in range(2):
        engine = place.engine()
        story.prepare(engine)
        story.play(engine)
    assert ended(engine) == story.ending


@pytest.mark.row("F-226", "F-259")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", STORIES)
def test_a_crash_anywhere_changes_nothing(new_store: NewStore, name: str) -> None:
    """Whatever point the process dies at, the next one brings the story to the same end, with nothing left over."""
    report = tried(STORIES[name].scenario, new_store, on_server=3)
    assert report.outcome == (STORIES[name].ending, [], 0)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", STORIES)
def test_a_second_crash_during_the_recovery_changes_nothing(new_store: NewStore, name: str) -> None:
    """The process that takes over dies as well, and the third one finishes."""
    tried(STORIES[name].scenario, new_store, on_server=8, again_after=3)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("again_after", [None, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", STORIES)
def test_every_point_of_every_story(new_store: NewStore, name: str, again_after: int | None) -> None:
    """The campaign: all points on both stores, alone and with a second crash."""
    crash_everywhere(checked(STORIES[name].scenario), new_store=new_store, again_after=again_after)
