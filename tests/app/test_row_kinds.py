"""Rows of kinds that an engine learns of by their declaration: written, merged, read, verified and deleted; and what is no such row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from standfast import CommandError, Decider, Decision, Moment, NotFoundError
from standfast.kernel.row_kinds.steps import DeadLetterRaised, StepMoved, StepOpened, StoredStep
from standfast.kernel.rows import flaw_of
from standfast.testing import ManualEngine, given
from support.desks import Desk
from support.engines import Place
from support.notes import NOTES, WEIGHTS, Edit, Notebook, NoteOpened, StoredNote, StoredWeight, declared
from support.rows import new_id


@pytest.fixture
def own(place: Place) -> Iterator[Place]:
    """A database with the kinds that only tests declare."""
    with declared(place.store):
        yield place


def edited(engine: ManualEngine, *lines: str, key: str = "n-1") -> None:
    """One command, and so one commit."""
    engine.deciders.execute(Notebook, Edit(key, lines))


def notes(place: Place, engine: ManualEngine, tenant: str = "default") -> list[StoredNote]:
    """The notes of the first notebook."""
    return place.store.reader(tenant).rows(NOTES, engine.deciders.get(Notebook, "n-1").id)


def weights(place: Place, engine: ManualEngine) -> list[StoredWeight]:
    """Its weights."""
    return place.store.reader("default").rows(WEIGHTS, engine.deciders.get(Notebook, "n-1").id)


def test_a_decider_writes_rows_of_a_new_kind(own: Place) -> None:
    """They are written in the commit of the decision, changed by later ones, and seen by their tenant alone."""
    engine = own.engine().register(Notebook())
    edited(engine, "open 1 milk", "open 2 bread", "weigh flour 500")
    edited(engine, "say 1 cream", "drop 2", "weigh flour 250")
    (note,), (weight,) = notes(own, engine), weights(own, engine)
    assert (note.number, note.text, note.closed_at, weight.grams) == (1, "cream", None, 250)
    edited(engine, "close 1")
    (note,) = notes(own, engine)
    assert (note.text, note.verdict, note.closed_at) == ("cream", "done", note.moved_at)
    assert notes(own, engine, "other") == []


def test_what_one_commit_does_to_a_row_it_does_at_once(own: Place) -> None:
    """A row that opens and changes opens changed, one that opens and ends is never written, one that ends can be opened again."""
    engine = own.engine().register(Notebook())
    edited(engine, "open 1 milk", "say 1 cream", "close 1", "open 2 bread", "drop 2", "open 3 old", "weigh salt 1")
    (first, third) = notes(own, engine)
    assert (first.text, first.verdict, third.text) == ("cream", "done", "old")
    edited(engine, "drop 3", "open 3 new", "say 3 newer", "weigh salt 2", "weigh salt 3", "unweigh salt")
    assert [row.text for row in notes(own, engine)] == ["cream", "newer"]
    assert weights(own, engine) == []
    assert engine.deciders.verify(Notebook, "n-1").differences == []


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("update {}test_notes set text = 'forged' where number = 1", "note a 1"),
        ("update {}test_notes set verdict = 'forged' where number = 2", "note a 2"),
        ("delete from {}test_notes where number = 2", "note a 2"),
        ("update {}test_notes set number = 3 where number = 2", "note a 2, note a 3"),
        ("update {}test_weights set grams = 0", "weight flour"),
    ],
)
def test_rows_of_a_new_kind_are_verified(own: Place, statement: str, what: str) -> None:
    """The history is folded again and tells the rows; what is stored otherwise is named."""
    engine = own.engine().register(Notebook())
    edited(engine, "open 1 milk", "open 2 bread", "weigh flour 500")
    edited(engine, "close 2", "weigh flour 250")
    assert engine.deciders.verify(Notebook, "n-1").differences == []
    Desk(own.store).run(statement)
    found = engine.deciders.verify(Notebook, "n-1").differences
    assert ", ".join(each.partition(":")[0] for each in found) == what


def test_rows_of_a_new_kind_go_with_their_instance(own: Place) -> None:
    """An instance that is deleted leaves none of them behind, and others keep theirs."""
    engine = own.engine().register(Notebook())
    edited(engine, "open 1 bread", key="n-2")
    edited(engine, "open 1 milk", "weigh flour 500", "finish")
    engine.instances.delete(engine.deciders.get(Notebook, "n-1").id)
    with pytest.raises(NotFoundError):
        engine.deciders.get(Notebook, "n-1")
    assert Desk(own.store).query("select text from {}test_notes") == [("bread",)]
    assert Desk(own.store).query("select name from {}test_weights") == []


# -- what is no row


@dataclass(frozen=True)
class Name:
    workflow_id: str


@dataclass(frozen=True)
class Named:
    pass


class Careless(Decider[int, Name, Named, None]):
    """Names whatever it was made with as a row."""

    type = "careless"

    def __init__(self, *records: Any) -> None:
        self._records = records

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Named) -> int:
        return state + 1

    def decide(self, state: int, command: Name, moment: Moment) -> Decision:
        return Decision(events=(Named(),), records=self._records)


NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)
UNSTORABLE: dict[str, tuple[Any, str]] = {
    "no record": ("a step", "is a str, which no kind of row declares"),
    "an event": (Named(), "is a Named, which no kind of row declares"),
    "undeclared": (NoteOpened(page="a", number=1, text="x"), "is a NoteOpened, which no kind of row declares"),
    "a row as it is read": (
        StoredStep(number=1, node="a", instance=new_id(), opened_at=NOON, moved_at=NOON, started_at=None),
        "is a StoredStep, which no kind of row declares",
    ),
    "text for a number": (
        StepOpened(number="1", node="a"),  # type: ignore[arg-type]
        "has a str, where int is expected, as 'number' of StepOpened",
    ),
    "truth for a number": (StepOpened(number=True, node="a"), "has a bool, where int is expected"),
    "number for a text": (StepOpened(number=1, node=7), "has an int, where str is expected"),  # type: ignore[arg-type]
    "nothing for a text": (StepOpened(number=1, node=None), "has None as 'node'"),  # type: ignore[arg-type]
    "text for bytes": (StepOpened(number=1, node="a", input="{}"), "has a str, where bytes is expected"),  # type: ignore[arg-type]
    "another word": (StepMoved(number=1, status="gone"), "has 'gone', which is none of pending, running"),  # type: ignore[arg-type]
    "a large number": (StepOpened(number=2**31, node="a"), "has the number 2147483648, which has more than 32 bits"),
    "a NUL": (StepOpened(number=1, node="a\x00b"), "has a text with a NUL character"),
    "half a character": (StepOpened(number=1, node="\ud800"), "has a text with half a character"),
    "no zone": (StepMoved(number=1, status="running", started_at=NOON.replace(tzinfo=None)), "which has no zone"),
    "work's letter": (
        DeadLetterRaised(source="effect", number=1, name="a", reason="r", error="e"),  # type: ignore[arg-type]
        "has 'effect', which is none of step, compensation",
    ),
}


@pytest.mark.parametrize("record", UNSTORABLE.values(), ids=list(UNSTORABLE))
def test_what_is_no_row_is_refused(place: Place, record: tuple[Any, str]) -> None:
    """Before a store sees it: with a sentence that names the decider, the record and its flaw. Nothing of the decision stays."""
    good = StepOpened(number=9, node="good")
    decider = Careless(good, record[0])
    engine = place.engine().register(decider)
    with pytest.raises(CommandError, match="record 1 of its Decision") as refused:
        engine.deciders.execute(Careless, Name("c-1"))
    assert record[1] in str(refused.value)
    assert flaw_of(record[0])
    assert Desk(place.store).query("select count(*) from {}steps") == [(0,)]
    given(decider).when(Name("c-1")).then_error(CommandError)


def test_a_row_by_itself_is_no_list_of_rows(place: Place) -> None:
    """Records come in a tuple."""
    decider = Careless()
    decider._records = StepOpened(number=9, node="good")  # type: ignore[assignment]
    engine = place.engine().register(decider)
    with pytest.raises(CommandError, match="gave a StepOpened as records of its Decision; give a tuple"):
        engine.deciders.execute(Careless, Name("c-1"))


def test_a_decider_without_rows_of_is_verified_without_its_rows(place: Place) -> None:
    """Who does not tell which rows its events leave is not found unsound for rows that nobody can make again."""
    engine = place.engine().register(Careless(StepOpened(number=1, node="a")))
    engine.deciders.execute(Careless, Name("c-1"))
    assert Desk(place.store).query("select node from {}steps") == [("a",)]
    assert engine.deciders.verify(Careless, "c-1").differences == []


def test_a_row_that_is_opened_twice_is_refused_and_not_tried_for_ever(own: Place) -> None:
    """It is the decider's mistake, whoever brings the command: told at once, a dead letter from the inbox, and the next one goes on."""
    engine = own.engine().register(Notebook())
    edited(engine, "open 1 milk")
    with pytest.raises(CommandError, match="another one has"):
        edited(engine, "open 1 bread")
    engine.deciders.submit(Notebook, Edit("n-1", ("open 1 bread",)))
    engine.deciders.submit(Notebook, Edit("n-1", ("say 1 cream",)))
    engine.advance(hours=1)
    assert [note.text for note in notes(own, engine)] == ["cream"]
    (letter,) = engine.dead_letters.list()
    assert "another one has" in letter.error
