"""Command ids over deployments: what is the same command for its sender is the same command for the engine."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from standfast import Decider, Decision, Moment, ReusedIdError, message
from support.engines import Place
from support.samples import Act, Answer, Do, Noted, Notes, Puppet


@message(name="Do")
@dataclass(frozen=True)
class DoNoted:
    """The command of tomorrow: one more field, with a default."""

    workflow_id: str
    what: str = ""
    note: str = ""


@message(name="Do", version=2)
@dataclass(frozen=True)
class DoText:
    """The command of the day after: other fields, and an upcaster that leads there."""

    workflow_id: str
    text: str


class Noting(Decider[Notes, DoNoted, Noted, Act]):
    type = "puppet"

    def initial(self) -> Notes:
        return ()

    def evolve(self, state: Notes, event: Noted) -> Notes:
        return (*state, event.what)

    def decide(self, state: Notes, command: DoNoted, moment: Moment) -> Answer:
        return Decision.event(Noted(command.what + command.note))


class Texting(Decider[Notes, DoText, Noted, Act]):
    type = "puppet"
    command_upcasters = {("Do", 1): lambda old: {"workflow_id": old["workflow_id"], "text": old["what"]}}  # noqa: RUF012

    def initial(self) -> Notes:
        return ()

    def evolve(self, state: Notes, event: Noted) -> Notes:
        return (*state, event.what)

    def decide(self, state: Notes, command: DoText, moment: Moment) -> Answer:
        return Decision.event(Noted(command.text))


@pytest.mark.row("D-111")
@pytest.mark.parametrize(
    ("newer", "again", "another"),
    [(Noting(), DoNoted("p-1", "x"), DoNoted("p-1", "x", "new")), (Texting(), DoText("p-1", "x"), None)],
)
@pytest.mark.parametrize("is_queued", [False, True])
def test_an_id_stands_for_the_same_command_after_a_deployment(
    place: Place, newer: Noting, again: DoNoted, another: DoNoted | None, *, is_queued: bool
) -> None:
    """A new field at its default, or another version of the class, does not make another command of one that is sent again."""
    old = place.engine().register(Puppet())
    if is_queued:
        old.deciders.submit(Puppet, Do("p-1", "x"), command_id="k")
    else:
        old.deciders.execute(Puppet, Do("p-1", "x"), command_id="k")
    new = place.engine().register(newer)
    new.deciders.submit(newer, again, command_id="k")
    new.drain()
    new.deciders.execute(newer, again, command_id="k")
    assert (new.deciders.state(newer, "p-1"), new.dead_letters.list()) == (("x",), [])
    if another is not None:
        with pytest.raises(ReusedIdError):
            new.deciders.execute(newer, another, command_id="k")
