"""How instances begin and end: under which id, version and parent, once for each receipt, and who hears of their end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

import msgspec
import pytest

from standfast import Actor, Decision, Engine, InstanceInfo, Message, Moment, PayloadError, RequestContext
from standfast.engine.commit.batch import CommandBatch
from standfast.engine.commit.draft import InstanceDraft
from standfast.engine.commit.facts import Acting
from standfast.engine.commit.submission import CommandOutcome
from standfast.errors import NotFoundError, StandfastError
from standfast.kernel.ids import InstanceId, make_uuid7
from standfast.kernel.program import Program
from standfast.store.records.instances import Address, ReceiptKey
from standfast.testing.manual import START
from support.batching import ONE_COMMITTER, Batching
from support.engines import Live, Place
from support.inside import lanes_of, registry_of, service_of, store_of
from support.samples import Answer, Do, Doll, Noted, Notes, Puppet, act, note
from support.waiting import eventually

CHILD = InstanceId(make_uuid7(START, 7))
OTHER = InstanceId(make_uuid7(START, 8))


class Reply:
    """The answer to a command that was handed to the service itself."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._outcome: CommandOutcome | None = None
        self.error: BaseException | None = None

    def settle(self, outcome: CommandOutcome | None, error: BaseException | None) -> None:
        """The answer is there."""
        self._outcome, self.error = outcome, error
        self._arrived.set()

    @property
    def outcome(self) -> CommandOutcome:
        """What became of the command, once that is known."""
        assert self._arrived.wait(30)
        if self.error is not None:
            raise self.error
        assert self._outcome is not None
        return self._outcome


def execute(engine: Engine, what: str, **how: object) -> Reply:
    """Have the service carry out a command of a puppet, wherever it is told to."""
    names = ("key", "instance", "definition", "tenant")
    told = {"tenant": "default", "definition": "puppet"} | {name: how.pop(name) for name in names if name in how}
    reply = Reply()
    ada = RequestContext(actor=Actor(id="ada"))
    service_of(engine).execute(Address(**told), Do("", what), by=Acting(ada), settled=reply.settle, **how)  # type: ignore[arg-type]
    return reply


P = TypeVar("P", bound=Puppet)


def pinned(puppet: P, version: str) -> P:
    """A puppet of a version."""
    puppet.definition_version = version
    return puppet


def headers(engine: Engine) -> list[InstanceInfo]:
    """All instances, oldest first."""
    return engine.instances.list()[::-1]


def receipt(key: str) -> ReceiptKey:
    """What makes a start idempotent."""
    return ReceiptKey("default", "start", key)


# -- Under an id of the caller's choice.


@pytest.mark.parametrize("how", [{"identity": CHILD}, {"instance": CHILD}, {"identity": CHILD, "key": "k"}])
def test_an_instance_begins_under_the_id_that_it_is_given(place: Place, how: dict[str, object]) -> None:
    """With or without a key, named by the address or beside it: the id is the caller's, and later commands find it."""
    engine = place.engine().register(pinned(Puppet(), "3"))
    outcome = execute(engine, "begin", definition_version="3", **how).outcome
    assert (outcome.instance, outcome.version) == (CHILD, 1)
    (head,) = headers(engine)
    assert (head.id, head.key, head.definition_version) == (CHILD, how.get("key", ""), "3")
    assert execute(engine, "go on", instance=CHILD, may_create=False).outcome.version == 2


def test_an_id_is_not_used_for_an_instance_that_exists(place: Place) -> None:
    """A key that is known names its instance, whatever id a caller has in mind for a new one."""
    engine = place.engine().register(Puppet())
    first = execute(engine, "begin", key="k").outcome.instance
    assert execute(engine, "again", key="k", identity=CHILD).outcome.instance == first
    assert [head.id for head in headers(engine)] == [first]


def test_an_instance_without_a_key_gets_an_id_of_its_own(live: Live) -> None:
    """Commands that name nothing start an instance each, also when they share a transaction."""
    engine = live.engine(ONE_COMMITTER).register(Puppet())
    batching = Batching(engine)
    with batching.one():
        replies = [execute(engine, f"begin {number}") for number in range(5)]
    made = {reply.outcome.instance for reply in replies}
    assert len(made) == 5
    assert {head.id for head in headers(engine) if head.definition == "puppet"} == made


def test_an_id_that_nobody_knows_is_not_found(place: Place) -> None:
    """A command that may not begin an instance, or does not say of what, is refused."""
    engine = place.engine().register(Puppet())
    for how in ({"may_create": False}, {"definition": ""}):
        with pytest.raises(NotFoundError, match=str(CHILD)):
            _ = execute(engine, "go on", instance=CHILD, **how).outcome
    assert headers(engine) == []


def test_an_id_that_tells_no_time_is_refused(place: Place) -> None:
    """Lists and partitions go by the time in an id; the message says what is wanted."""
    engine = place.engine().register(Puppet())
    with pytest.raises(PayloadError, match="UUIDv7"):
        _ = execute(engine, "begin", identity=InstanceId(UUID("12345678-1234-4234-8234-123456789abc"))).outcome


def test_another_tenants_id_begins_nothing(place: Place) -> None:
    """The id of another tenant's instance is not found, and that instance hears of nothing."""
    engine = place.engine().register(Puppet())
    execute(engine, "begin", identity=CHILD, tenant="rival")
    with pytest.raises(StandfastError):
        _ = execute(engine, "go on", instance=CHILD).outcome
    assert headers(engine) == []
    assert place.store.reader("rival").headers([CHILD])[0].version == 1


@pytest.mark.row("P-052")
@pytest.mark.parametrize("is_one_batch", [False, True])
def test_a_start_with_a_receipt_names_the_first_instance(live: Live, *, is_one_batch: bool) -> None:
    """Repeated with another id in mind, in the same transaction or later, a start answers with the instance that there is."""
    engine = live.engine(ONE_COMMITTER).register(Puppet())
    batching = Batching(engine)
    starts = [{"identity": CHILD}, {"identity": OTHER}, {}]
    if is_one_batch:
        with batching.one():
            replies = [execute(engine, "begin", receipt=receipt("r-1"), **how) for how in starts]
    else:
        replies = []
        for how in starts:
            replies.append(execute(engine, "begin", receipt=receipt("r-1"), **how))
            _ = replies[-1].outcome
    assert [(reply.outcome.instance, reply.outcome.version) for reply in replies] == [(CHILD, 1)] * 3
    assert execute(engine, "begin", receipt=receipt("r-2"), identity=OTHER).outcome.instance == OTHER
    assert {head.id for head in headers(engine) if head.definition == "puppet"} == {CHILD, OTHER}


def test_a_result_without_a_key_goes_to_the_instance_that_asked(place: Place) -> None:
    """A decider whose commands name no instance gets the results of its effects where the effects come from."""

    class Keyless(Puppet):
        def key_of(self, command: Do) -> str:
            return ""

    engine = place.engine().register(Keyless(act), lambda context, effect: Do("", f"done {effect.what}"))
    for number, identity in enumerate((CHILD, OTHER)):
        execute(engine, f"x{number}", identity=identity)
    engine.drain()
    events = [
        [msgspec.json.decode(event.data) for event in place.store.reader("default").events(each)]
        for each in (CHILD, OTHER)
    ]
    assert [[event["what"] for event in each] for each in events] == [["x0", "done x0"], ["x1", "done x1"]]


# -- Started by another instance.


def starting(**how: object) -> Puppet:
    """A puppet that starts a doll under a known id."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        told = {"instance": CHILD, "parent": moment.instance, "definition_version": "2"} | how
        return Decision.event(Noted(command.what)).with_message(
            Message(decider="doll", command=Do("", "begin"), **told)  # type: ignore[arg-type]
        )

    return Puppet(choose)


def test_a_child_begins_under_the_id_that_its_parent_chose(place: Place) -> None:
    """It has that very id, the version that it is pinned to, and knows its parent; later messages find it."""
    engine = place.engine().register(starting()).register(pinned(Doll(), "2"))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    parent, child = headers(engine) if headers(engine)[0].definition == "puppet" else headers(engine)[::-1]
    assert (child.id, child.definition, child.key, child.definition_version) == (CHILD, "doll", "", "2")
    assert (child.parent, parent.parent) == (parent.id, None)
    engine.deciders.execute(Puppet, Do("p-1", "again"))
    engine.drain()
    assert place.store.reader("default").headers([CHILD])[0].version == 2
    assert [head.id for head in engine.instances.list(parent=parent.id)] == [CHILD]


def test_a_child_may_have_a_key(place: Place) -> None:
    """A message with an id and a key starts an instance with both."""
    engine = place.engine().register(starting(key="d-1")).register(Doll())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert engine.deciders.get(Doll, "d-1").id == CHILD


def test_a_message_to_an_unknown_id_gives_up_unless_it_starts_it(place: Place) -> None:
    """Without a parent the id must be known: the message is a dead letter, which is the same if it is requeued."""
    engine = place.engine().register(starting(parent=None)).register(Doll())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.reason, letter.instance) == ("inbox", "not_found", CHILD)
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert [each.reason for each in engine.dead_letters.list()] == ["not_found"]


def test_a_start_that_gave_up_can_be_requeued(place: Place) -> None:
    """The dead letter of a message that starts an instance keeps what it begins with."""

    def stubborn(state: Notes, command: Do, moment: Moment) -> Answer:
        if not is_open:
            raise ValueError("closed")
        return note(state, command, moment)

    is_open: list[bool] = []
    engine = place.engine().register(starting()).register(pinned(Doll(stubborn), "2"))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(hours=1)
    (letter,) = store_of(engine).reader("default").dead_letters()
    is_open.append(True)
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    (child,) = place.store.reader("default").headers([CHILD])
    assert (child.definition_version, child.parent) == ("2", letter.parent)
    assert child.parent is not None


def test_versions_are_asked_for_where_they_matter(place: Place) -> None:
    """The program of a new instance is that of its version, to which it is pinned; later it is that of the version in its row."""
    engine = place.engine().register(pinned(Puppet(), "4"))
    asked: list[tuple[str, str]] = []

    def programs(tenant: str, name: str, version: str = "", /) -> Program:
        asked.append((name, version))
        return registry_of(engine).get(tenant, name)

    service_of(engine).around.programs = programs
    execute(engine, "begin", identity=CHILD, definition_version="4")
    execute(engine, "begin", identity=OTHER)
    for identity in (CHILD, OTHER):
        lanes_of(engine)[0].cache.forget(identity)
        execute(engine, "go on", instance=identity)
    assert asked == [("puppet", "4"), ("puppet", ""), ("puppet", "4"), ("puppet", "4")]


# -- And its end.


class Hearing:
    """A listener that passes on the instances that a commit has ended."""

    def __init__(self, hear: Callable[[Sequence[InstanceDraft]], None]) -> None:
        self.hear = hear

    def committed(self, batch: CommandBatch) -> None:
        """Pass them on, if there are any."""
        ended = [draft for draft in batch.written if draft.ends]
        if ended:
            self.hear(ended)


def test_those_that_a_commit_ended_are_told(place: Place) -> None:
    """Each instance is named once, with its row and state after the commit that ended it; others are not."""
    told: list[tuple[str, str, int, object]] = []
    engine = place.engine().register(Puppet())

    def hear(ended: Sequence[InstanceDraft]) -> None:
        told.extend((each.header.key, each.header.status, each.header.version, each.state) for each in ended)

    service_of(engine).listen(Hearing(hear))
    for key, what in (("a", "x"), ("b", "end"), ("a", "y"), ("a", "end"), ("a", "late"), ("c", "x")):
        engine.deciders.execute(Puppet, Do(key, what))
    assert told == [("b", "completed", 1, ("end",)), ("a", "completed", 3, ("x", "y", "end"))]


def test_ends_are_told_when_they_are_stored_and_before_the_caller_hears(live: Live) -> None:
    """Several of one commit are told at once; whoever hears of them finds them ended."""
    engine = live.engine(ONE_COMMITTER).register(Puppet())
    batching = Batching(engine)
    told: list[list[str]] = []

    def hear(ended: Sequence[InstanceDraft]) -> None:
        rows = store_of(engine).reader("default").headers([each.header.id for each in ended])
        told.append(sorted(head.key for head in rows if head.ended_at is not None))

    service_of(engine).listen(Hearing(hear))
    with batching.one():
        replies = [engine.futures.deciders.execute(Puppet, Do(key, "end")) for key in ("a", "b")]
    replies[0].when_done(lambda: told.append(["answered"]))
    for reply in replies:
        reply.result(timeout=30)
    eventually(lambda: len(told) == 2)
    assert told == [["a", "b"], ["answered"]]


def test_whoever_fails_on_an_end_harms_nobody(place: Place) -> None:
    """What is raised there is logged; the command was carried out, and so is the next."""

    def broken(ended: Sequence[InstanceDraft]) -> None:
        raise ValueError("deaf")

    engine = place.engine().register(Puppet())
    service_of(engine).listen(Hearing(broken))
    engine.deciders.execute(Puppet, Do("a", "end"))
    engine.deciders.execute(Puppet, Do("b", "end"))
    assert [head.status for head in headers(engine)] == ["completed", "completed"]
