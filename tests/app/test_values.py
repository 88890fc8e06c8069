"""Whatever is stored can be read: values of the wrong type never get in, and what is kept of others is the engine's own."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from standfast import (
    ConfigurationError,
    Decider,
    Decision,
    DefinitionError,
    EffectContext,
    Engine,
    Moment,
    PayloadError,
    Saga,
    Settings,
)
from standfast.store.records.instances import Address, Snapshot
from standfast.testing import ManualEngine
from support.batching import ONE_COMMITTER
from support.engines import Live, Place
from support.samples import Add, Answer, Counter, Do, Noted, Puppet, act, done
from support.waiting import eventually

OFTEN = Settings(snapshot_events=10)


class Marked(str):
    __slots__ = ()

    def __str__(self) -> str:
        return self  # As Django's do.


@dataclass
class Weigh:
    workflow_id: str
    weight: float
    tags: Sequence[str] = ()


@dataclass
class Weighed:
    weight: float
    tags: list[str] = field(default_factory=list)
    by_tag: dict[str, int] = field(default_factory=dict)


@dataclass
class Load:
    tags: list[str]


@dataclass
class Scale:
    kinds: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


class Scales(Decider[Scale, Weigh, Weighed, Load]):
    """Its state is made of the very parts of its events, and knows their types."""

    type = "scales"

    def __init__(self) -> None:
        self.kept: list[Weighed] = []
        """The events as `decide` made them."""

    def initial(self) -> Scale:
        return Scale()

    def evolve(self, state: Scale, event: Weighed) -> Scale:
        return Scale([*state.kinds, f"{type(event.weight).__name__} {type(event.by_tag).__name__}"], event.tags)

    def decide(self, state: Scale, command: Weigh, moment: Moment) -> Answer:
        counted: dict[str, int] = defaultdict(int)
        for tag in command.tags:
            counted[tag] += 1
        self.kept.append(Weighed(command.weight, list(command.tags), counted))
        return Decision.event(self.kept[-1]).with_effect(Load(self.kept[-1].tags))


def remembered(engine: Engine) -> Scale:
    """The state that the next command is decided on."""
    found = engine.service.committer.lanes[0].cache.find(Address(tenant="default", definition="scales", key="s-1"))
    assert found is not None
    assert isinstance(found.state, Scale)
    return found.state


@pytest.mark.row("D-027")
@pytest.mark.parametrize("weight", ["12.50", None, b"1", 2**53 + 1])
def test_a_wrong_type_is_refused_at_the_door(place: Place, weight: object) -> None:
    """A command with a field of another type never gets in, neither to be carried out nor to wait; the field is named."""
    engine = place.engine().register(Scales())
    wrong = Weigh("s-1", weight)  # type: ignore[arg-type]
    for reply in (engine.futures.deciders.execute(Scales, wrong), engine.futures.deciders.submit(Scales, wrong)):
        with pytest.raises(PayloadError, match=r"^Weigh\.weight must be float|^command Weigh of 'scales' .*weight"):
            reply.result()
    assert engine.instances.list() == []
    assert engine.admin.inbox_depth() == 0


def test_a_text_that_is_marked_as_something_is_kept_as_a_text(place: Place) -> None:
    """What templates of Django and Jinja make is a class of texts of their own: it is taken, and handlers get plain texts."""
    seen: list[object] = []

    def mail(body: str, names: dict[str, str]) -> dict[str, object]:
        seen.extend([body, *names, *names.values()])
        return {"sent": Marked("<i>")}

    engine = place.engine().register(Saga("mail").step("mail", mail).build())
    run = engine.start("mail", {"body": Marked("<b>"), "names": {Marked("a"): Marked("b")}})
    engine.drain()
    assert run.result() == {"body": "<b>", "names": {"a": "b"}, "sent": "<i>"}
    assert (seen, {type(each) for each in seen}) == (["<b>", "a", "b"], {str})
    assert engine.instances.verify(run.id).is_sound


def test_memory_and_history_hold_the_same(place: Place) -> None:
    """The state is folded from what is stored, so a restart changes nothing: not even the types of what the decider gave."""
    engine = place.engine().register(Scales())
    for weight in (1, 2.5):
        engine.deciders.execute(Scales, Weigh("s-1", weight, ("a",)))
    loaded = place.engine().register(Scales()).deciders.state(Scales, "s-1")
    assert remembered(engine) == loaded == Scale(["float dict", "float dict"], ["a"])


def test_no_object_of_the_users_stays_in_the_engine(place: Place) -> None:
    """What the caller does to its command, or the decider to its events, once they are carried out, changes nothing."""
    scales = Scales()
    engine = place.engine().register(scales)
    command = Weigh("s-1", 1.0, ["good"])
    engine.deciders.execute(Scales, command)
    command.tags = ["evil"]
    scales.kept[0].tags.append("evil")
    assert remembered(engine) == Scale(["float dict"], ["good"])


def test_a_handler_gets_a_body_of_its_own(live: Live) -> None:
    """What a handler does to its effect reaches neither its next call nor the state."""
    seen: list[list[str]] = []

    def load(context: EffectContext, effect: Load) -> None:
        seen.append(list(effect.tags))
        effect.tags.append("evil")
        if context.attempt == 1:
            raise ConnectionError

    engine = live.engine(ONE_COMMITTER).register(Scales(), load).start_worker()
    engine.deciders.execute(Scales, Weigh("s-1", 1.0, ["good"]))
    eventually(lambda: len(seen) == 2 and not engine.deciders.get(Scales, "s-1").effects)
    assert seen == [["good"], ["good"]]
    assert remembered(engine).tags == ["good"]


def test_a_handler_that_answers_in_the_wrong_type_has_failed(live: Live) -> None:
    """Its command is refused at once where it comes in, with the class and the field, and its instance goes on."""
    engine = live.engine().register(Puppet(act), lambda context, effect: Do("p-1", 7)).start_worker()  # type: ignore[arg-type]
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    (letter,) = eventually(engine.dead_letters.list)
    assert (letter.attempts, letter.reason) == (1, "handler_failed")
    assert letter.error.startswith("Fail: what the handler 'puppet' returned cannot be kept: ")
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


@dataclass(frozen=True)
class Ambiguous:
    workflow_id: str
    note: str | bytes


class Unreadable(Decider[int, Ambiguous, Ambiguous, None]):
    type = "unreadable"

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Ambiguous) -> int:
        return state

    def decide(self, state: int, command: Ambiguous, moment: Moment) -> Answer:
        return Decision.event(command)


def test_a_type_that_can_never_be_read_is_refused_at_registration() -> None:
    """Nobody has to lose an instance to find out that a field cannot come back."""
    with ManualEngine() as engine, pytest.raises(DefinitionError) as caught:
        engine.register(Unreadable())
    assert [each.code for each in caught.value.diagnostics] == ["unreadable_type", "unreadable_type"]
    assert "Ambiguous.note of command Ambiguous could never be read back" in str(caught.value)


# -- Snapshots.


@dataclass
class Open:
    n: int = 0


@dataclass
class Closed(Open):
    """The same fields, and another meaning."""


class Base(Decider[Open, Add, Add, None]):
    """Its state is of a subclass of what it declares."""

    type = "door"

    def initial(self) -> Open:
        return Open()

    def evolve(self, state: Open, event: Add) -> Open:
        return Closed(state.n + 1)

    def decide(self, state: Open, command: Add, moment: Moment) -> Answer:
        return Decision.event(command)


class Union(Decider[Open | Closed, Add, Add, None]):
    """It declares both."""

    type = "door"

    def initial(self) -> Open | Closed:
        return Open()

    def evolve(self, state: Open | Closed, event: Add) -> Open | Closed:
        return Closed(state.n + 1) if type(state) is Open else Open(state.n + 1)

    def decide(self, state: Open | Closed, command: Add, moment: Moment) -> Answer:
        return Decision.event(command)


class Shelf(Decider[dict[str, int], Add, Add, None]):
    """Its state is a kind of dict that no codec brings back."""

    type = "door"

    def initial(self) -> dict[str, int]:
        return defaultdict(int)

    def evolve(self, state: dict[str, int], event: Add) -> dict[str, int]:
        state[str(len(state))] += event.by
        return state

    def decide(self, state: dict[str, int], command: Add, moment: Moment) -> Answer:
        return Decision.event(command)


def snapshot_of(place: Place, key: str) -> Snapshot | None:
    """The snapshot of an instance."""
    loaded = place.store.reader("default").load(Address(tenant="default", definition="door", key=key))
    assert loaded is not None
    return loaded.snapshot


@pytest.mark.parametrize("kind", [Base, Shelf])
def test_a_state_that_would_not_come_back_has_no_snapshot(
    place: Place, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The events tell such a state, in every process; the log says once why it is slow."""
    engine = place.engine(OFTEN).register(kind())
    for key in ("d-1", "d-2"):
        for _ in range(25):
            engine.deciders.execute(kind, Add(key))
    state = place.engine(OFTEN).register(kind()).deciders.state(kind, "d-1")
    assert state == (Closed(25) if kind is Base else {str(number): 1 for number in range(25)})
    assert snapshot_of(place, "d-1") is None
    told = [record for record in caplog.records if "snapshot_unsupported" in record.message]
    assert len(told) == 1
    assert told[0].levelno == logging.WARNING
    assert "'door'" in told[0].message
    assert "and would come back as a" in told[0].message


def test_a_union_of_classes_has_snapshots(place: Place) -> None:
    """A state that is one of several classes comes back as the one that it was."""
    engine = place.engine(OFTEN).register(Union())
    for _ in range(25):
        engine.deciders.execute(Union, Add("d-1"))
    snapshot = snapshot_of(place, "d-1")
    assert snapshot is not None
    assert snapshot.version == 20
    assert engine.registry.get("default", "door").restore(snapshot.data) == Open(20)
    state = place.engine(OFTEN).register(Union()).deciders.state(Union, "d-1")
    assert (type(state), state.n) == (Closed, 25)


def test_a_state_type_that_can_never_come_back_is_told_at_registration(caplog: pytest.LogCaptureFixture) -> None:
    """That all of its instances will have to be replayed is known before there is one."""

    class Blurred(Counter):
        type = "blurred"

    Blurred.__orig_bases__ = (Decider[dict[str, str | bytes], Add, Add, None],)  # type: ignore[attr-defined]
    with ManualEngine() as engine:
        engine.register(Blurred())
    assert "'blurred' gets no snapshots" in caplog.text
    assert "`str | bytes` is not supported" in caplog.text


# -- Texts, tenants and limits.


@pytest.mark.parametrize("comment", ["x" * 65_537, "ä" * 32_769, 7])
def test_a_comment_has_a_bearable_length(place: Place, comment: str) -> None:
    """Every event of a command carries its comment, so there is a limit to it, at every door."""
    engine = place.engine().register(Counter())
    for ask in (engine.deciders.execute, engine.deciders.submit):
        with pytest.raises(PayloadError, match="the comment"):
            ask(Counter, Add("c-1"), comment=comment)
    engine.deciders.execute(Counter, Add("c-1"), comment="x" * 65_536)
    assert len(engine.deciders.history(Counter, "c-1")[0].comment) == 65_536


def test_the_owner_of_shared_definitions_is_no_tenant(place: Place) -> None:
    """Nobody acts as the owner of what all tenants share."""
    with pytest.raises(PayloadError, match="not a tenant"):
        place.engine().as_tenant("*")


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(seconds=-1), timedelta.max])
def test_a_handler_has_a_limit_or_none(timeout: timedelta) -> None:
    """No time at all is no limit; whoever wants none says so."""
    with ManualEngine() as engine:
        with pytest.raises(ConfigurationError, match="None for no limit"):
            engine.register(Puppet(), done, timeout=timeout)
        with pytest.raises(ConfigurationError, match="None for no limit"):
            engine.handle("work", lambda: None, timeout=timeout)
    with pytest.raises(ConfigurationError, match="None for no limit"):
        Settings(handler_timeout=timeout)


@pytest.mark.parametrize("name", ["a\x00b", "a\nb", "n" * 513])
def test_a_handlers_name_can_be_kept(name: str) -> None:
    """A name that no database can keep would stop the claims of its whole process."""
    with ManualEngine() as engine, pytest.raises(ConfigurationError, match="handler's name"):
        engine.handle(name, lambda: None)


def test_timers_without_a_key_share_none(place: Place) -> None:
    """However many are set, each of them fires."""

    def choose(state: tuple[str, ...], command: Do, moment: Moment) -> Answer:
        decision = act(state, command, moment)
        if command.what != "all" or not isinstance(decision, Decision):
            return Decision.event(Noted(command.what))
        for number in range(3):
            decision = decision.with_timer_after(timedelta(hours=1), Do("p-1", f"ring {number}"))
        return decision

    engine = place.engine().register(Puppet(choose), done)
    engine.deciders.execute(Puppet, Do("p-1", "all"))
    engine.advance(hours=2)
    notes = engine.deciders.state(Puppet, "p-1")
    assert sorted(notes) == ["all", "ring 0", "ring 1", "ring 2"]
