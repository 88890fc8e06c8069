"""Connections that break in the middle of a commit: every command is answered, and carried out exactly once."""

from __future__ import annotations

import random
from collections import Counter as Tally
from collections.abc import Iterator
from datetime import timedelta
from itertools import product

import msgspec
import pytest

from standfast import Decision, Engine, Fail, Moment, StandfastError
from standfast.kernel.decision import Recall
from support.engines import QUICK, Live
from support.proxy import MODES, Link, Mode, Proxy, When, proxied
from support.samples import Act, Answer, Do, Ledger, Noted, Notes, Order, Puppet, Shop, act
from support.samples import Place as PlaceOrder
from support.waiting import eventually

COMMIT = b"insert into standfast.events"
CLAIM = b"order by r.rank, r.instance, r.number limit p.most"


@pytest.fixture
def proxy(postgres_dsn: str) -> Iterator[Proxy]:
    """A proxy in front of a database of the test's own."""
    with proxied(postgres_dsn) as proxy:
        yield proxy


@pytest.fixture
def live(proxy: Proxy, postgres_dsn: str) -> Iterator[Live]:
    """Engines that reach the database through the proxy; what they leave behind is checked without it."""
    live = Live(proxy.url)
    yield live
    live.url = postgres_dsn
    live.close()


def speaking(statement: bytes, skip: int = 0) -> When:
    """The moment at which a connection that has used a statement speaks again, after some further words."""
    left = [skip]

    def when(link: Link, data: bytes) -> bool:
        if statement not in link.said:
            return False
        left[0] -= 1
        return left[0] < 0

    return when


def noted(engine: Engine, keys: list[str]) -> Tally[str]:
    """How often each word was noted, over all puppets."""
    states: list[Notes] = [engine.futures.deciders.state(Puppet, key).result(timeout=30) for key in keys]
    return Tally(word for state in states for word in state)


def trial(engine: Engine, proxy: Proxy, name: str, *, skip: int, mode: Mode) -> None:
    """Cut the committer's connection while commands of every kind are under way; each must count once."""
    keys = [f"{name}-new-{number}" for number in range(3)] + ["old-1", "old-2"]
    cuts = proxy.cuts
    proxy.cut(speaking(COMMIT, skip), mode)
    replies = [
        engine.futures.deciders.execute(
            Puppet, Do(key, f"{name}-{number}"), command_id=f"{name}-{number}" if number % 2 else ""
        )
        for number, key in enumerate(keys * 2)
    ]
    for reply in replies:
        reply.result(timeout=60)
    eventually(
        lambda: (
            proxy.cuts > cuts
            or engine.futures.deciders.execute(Puppet, Do("spare", name)).exception(timeout=60) is not None
        )
    )
    count = noted(engine, keys)
    assert {word: count[word] for word in count if word.startswith(f"{name}-")} == {
        f"{name}-{number}": 1 for number in range(len(replies))
    }


@pytest.mark.parametrize("mode", MODES)
def test_a_cut_in_the_commit_is_found_out_and_not_guessed(live: Live, proxy: Proxy, mode: Mode) -> None:
    """Before, after or in the middle of the answer, at each of the committer's words: nothing lost, nothing twice."""
    engine = live.engine().register(Puppet())
    for key in ("old-1", "old-2", "spare"):
        engine.deciders.execute(Puppet, Do(key, "first"))
    for number, skip in enumerate((0, 0, 1, 1, 2, 3, 4, 5)):
        trial(engine, proxy, f"t{number}", skip=skip, mode=mode)
    assert proxy.cuts == 8


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_many_cuts_in_many_places(live: Live, proxy: Proxy, seed: int) -> None:
    """A campaign: a hundred cuts for each seed, at random words and in random ways."""
    chance = random.Random(seed)
    engine = live.engine().register(Puppet())
    for key in ("old-1", "old-2", "spare"):
        engine.deciders.execute(Puppet, Do(key, "first"))
    for number in range(100):
        trial(engine, proxy, f"t{number}", skip=chance.randrange(8), mode=chance.choice(MODES))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("statement", [COMMIT, CLAIM], ids=["commit", "claim"])
def test_no_effect_is_left_behind_by_a_cut(live: Live, proxy: Proxy, statement: bytes, mode: Mode) -> None:
    """A worker loses its connection while it claims, or while a commit hands work over: all of it is done in the end."""
    shop = Shop()
    engine = live.engine().register(Order(), shop).start_worker()
    client = live.engine().register(Order())
    for number in range(6):
        proxy.cut(speaking(statement, skip=number % 3), mode)
        for caller, kind in ((engine, "own"), (client, "other")):
            caller.futures.deciders.execute(Order, PlaceOrder(f"{kind}-{number}", number)).result(timeout=60)
        eventually(lambda: not client.futures.admin.backlog().result(timeout=30), within=60)
    keys = [f"{kind}-{number}" for kind in ("own", "other") for number in range(6)]
    assert {client.futures.deciders.state(Order, key).result(timeout=30).status for key in keys} == {"shipped"}
    assert client.futures.dead_letters.list().result(timeout=30) == []
    assert proxy.cuts > 0


@pytest.mark.parametrize("mode", MODES)
def test_a_command_id_answers_for_a_caller_who_gave_up(live: Live, proxy: Proxy, mode: Mode) -> None:
    """A caller whose patience ended repeats the command with its id, and it counts once."""
    hasty = live.engine(msgspec.structs.replace(QUICK, patience=timedelta(0))).register(Puppet())
    hasty.deciders.execute(Puppet, Do("p-1", "first"))
    for number in range(5):
        proxy.cut(speaking(COMMIT), mode)
        unsure = hasty.futures.deciders.execute(Puppet, Do("p-1", str(number)), command_id=str(number)).exception(
            timeout=60
        )
        assert unsure is None or (isinstance(unsure, StandfastError) and unsure.code == "store_unavailable")
        hasty.futures.deciders.execute(Puppet, Do("p-1", str(number)), command_id=str(number)).result(timeout=60)
    assert hasty.deciders.state(Puppet, "p-1") == ("first", "0", "1", "2", "3", "4")


def test_once_means_once_when_the_line_breaks(live: Live, proxy: Proxy) -> None:
    """An effect with `once` is called at most once, whatever connection breaks meanwhile; all others at least once."""
    calls = Ledger()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(command.what)).with_effect(Act(command.what), once=True)

    engine = live.engine().register(Puppet(choose), lambda context, effect: calls.add(effect)).start_worker()
    for number, (statement, mode) in enumerate(product((COMMIT, CLAIM), MODES)):
        proxy.cut(speaking(statement), mode)
        engine.futures.deciders.execute(Puppet, Do(f"p-{number}", str(number))).result(timeout=60)
        eventually(lambda: not engine.futures.admin.backlog().result(timeout=30), within=60)
    assert max(Tally(calls.entries).values()) == 1


def test_an_effect_that_fails_during_a_cut_is_still_given_up(live: Live, proxy: Proxy) -> None:
    """Reporting a failure survives a broken connection too."""

    def broken(context: object, effect: object) -> None:
        raise Fail("no")

    engine = live.engine().register(Puppet(act), broken).start_worker()
    for number, mode in enumerate(MODES):
        proxy.cut(speaking(CLAIM, skip=1), mode)
        engine.futures.deciders.execute(Puppet, Do(f"p-{number}", "x")).result(timeout=60)
        eventually(lambda: not engine.futures.admin.backlog().result(timeout=30), within=60)
    assert len(engine.dead_letters.list()) == 3


@pytest.mark.parametrize("mode", MODES)
def test_an_effect_is_taken_back_once_when_the_line_breaks(live: Live, proxy: Proxy, mode: Mode) -> None:
    """The commit that takes an effect back gets no answer: in the end it is gone, and its instance was told once."""
    calls = Ledger()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        noted = Decision.event(Noted(command.what))
        if command.what == "do":
            return noted.with_effect(Act("x"))
        if command.what == "take":
            back = Recall(effect=0, command=Do(command.workflow_id, "taken back"), stop=True)
            return msgspec.structs.replace(noted, recalls=(back,))
        return noted

    client = live.engine().register(Puppet(choose))
    keys = [f"p-{number}" for number in range(6)]
    for number, key in enumerate(keys):
        client.futures.deciders.execute(Puppet, Do(key, "do")).result(timeout=60)
        proxy.cut(speaking(COMMIT, skip=number % 3), mode)
        client.futures.deciders.execute(Puppet, Do(key, "take")).result(timeout=60)
    worker = live.engine().register(Puppet(choose), lambda context, effect: calls.add(effect)).start_worker()
    eventually(lambda: not worker.futures.admin.backlog().result(timeout=30), within=60)
    assert {client.futures.deciders.state(Puppet, key).result(timeout=30) for key in keys} == {
        ("do", "take", "taken back")
    }
    assert (calls.entries, proxy.cuts > 0) == ([], True)
