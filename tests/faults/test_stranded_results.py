"""Results that cannot be recorded for a reason that no other call mends: they are kept, told as dead letters, and the handler is not called again."""

from __future__ import annotations

import msgspec
import pytest

from standfast import Decision, EffectContext, Message, Moment, Saga
from standfast.engine.commit.committer import Committer
from standfast.errors import NotFoundError, ReplayError
from standfast.kernel.decision import Answer
from support.engines import AT_ONCE, QUICK, Live, Place
from support.samples import Act, Do, Doll, Noted, Notes, Puppet
from support.waiting import eventually


def telling(state: Notes, command: Do, moment: Moment) -> Answer:
    """Have something done, and then tell a doll, whose code this process may not have."""
    decision = Decision.event(Noted(command.what))
    if not command.what.startswith("done"):
        return decision.with_effect(Act(command.what))
    return decision.with_message(Message(decider="doll", command=Do("d-1", "told")))


class Counted:
    """A handler that comes to something, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, context: EffectContext, effect: Act) -> Do:
        """Do it."""
        self.calls += 1
        return Do("p-1", f"done {self.calls}")


@pytest.mark.row("F-062")
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_result_whose_message_goes_nowhere_is_a_dead_letter_and_no_other_call(
    place: Place, *, is_inside: bool
) -> None:
    """A message to a decider that no process has keeps a result from being recorded: the letter has the result, and counts once the decider is there."""
    handler = Counted()
    settings = msgspec.structs.replace(QUICK, retry=AT_ONCE)

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = telling(state, command, moment)
        assert isinstance(decision, Decision)
        effects = tuple(msgspec.structs.replace(each, transactional=is_inside) for each in decision.effects)
        return msgspec.structs.replace(decision, effects=effects)

    engine = place.engine(settings).register(Puppet(choose), handler)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(seconds=60)
    (letter,) = engine.dead_letters.list()
    assert (handler.calls, letter.source, letter.reason) == (1, "inbox", "not_found")
    assert "'doll'" in letter.error
    engine.register(Doll())
    engine.dead_letters.requeue(letter, reason="the doll is there")
    engine.advance(seconds=60)
    assert (handler.calls, engine.deciders.state(Puppet, "p-1")) == (1, ("x", "done 1"))
    assert engine.deciders.state(Doll, "d-1") == ("told",)
    assert engine.dead_letters.list() == []


@pytest.mark.row("F-062")
def test_workers_call_no_handler_again_whose_result_cannot_be_recorded(live: Live) -> None:
    """The same with threads."""
    handler = Counted()
    engine = live.engine().register(Puppet(telling), handler).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    (letter,) = eventually(engine.dead_letters.list)
    assert (handler.calls, letter.source, letter.reason) == (1, "inbox", "not_found")


@pytest.mark.row("F-062")
@pytest.mark.parametrize(
    "error", [NotFoundError("workflow", "K"), ReplayError("a bad event"), TypeError("a bug")], ids=repr
)
@pytest.mark.parametrize("is_undoing", [False, True])
def test_no_handler_or_compensation_is_called_again_because_its_commit_fails(
    live: Live, monkeypatch: pytest.MonkeyPatch, error: Exception, *, is_undoing: bool
) -> None:
    """Whatever the reason, a step that came back is not called again; it counts once its letter is requeued and the reason is gone."""
    calls: list[str] = []
    is_broken = True
    commit = Committer.commit

    def failing(self: Committer, submissions: list, finished: object) -> object:  # type: ignore[type-arg]
        wanted = "charge" if not is_undoing else "refund"
        if is_broken and wanted in calls and any(each.claim is not None for each in submissions):
            raise error
        return commit(self, submissions, finished)  # type: ignore[arg-type]

    def charge() -> dict[str, int]:
        calls.append("charge")
        return {"charge": 7}

    def refund() -> None:
        calls.append("refund")

    def ship() -> None:
        calls.append("ship")
        raise ValueError

    monkeypatch.setattr(Committer, "commit", failing)
    engine = live.engine()
    engine.register(Saga("order").step("charge", charge, undo=refund).step("ship", ship, attempts=1).build())
    engine.start_worker()
    run = engine.start("order", {})
    letter = eventually(engine.dead_letters.list)[0]
    assert letter.source == "inbox"
    is_broken = False
    engine.dead_letters.requeue(letter, reason="it is mended")
    eventually(lambda: run.describe().status == "failed")
    assert calls == ["charge", "ship", "refund"]
