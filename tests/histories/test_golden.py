"""Golden histories: what an earlier version wrote is read by this one, and comes to the same.

The files are never made anew. Where one of these tests fails, the code lacks an upcaster or a reader; see
docs/internals/golden-histories.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from histories.deciders import DECIDERS
from histories.golden import (
    FILES,
    Golden,
    Life,
    Work,
    asked,
    beside,
    body,
    delivery,
    folded,
    graph_programs,
    lacks,
    plain,
    read,
    stored,
    whole,
)
from standfast import Decider, JsonCodec
from standfast.features.batches.model.decider import BatchDecider
from standfast.features.events.model import PublicationDecider
from standfast.features.schedules.model.decider import ScheduleDecider
from standfast.graph.compiler import graph_bytes, read_graph
from standfast.kernel.history import StoredEvent, check_sequence
from standfast.kernel.program import Program
from standfast.store.records.instances import (
    DeadLetterRecord,
    StoredDefinition,
    StoredEffect,
    StoredMessage,
    StoredTimer,
)

OWN_DECIDERS: tuple[Callable[[], Decider[Any, Any, Any, Any]], ...] = (
    PublicationDecider,
    ScheduleDecider,
    BatchDecider,
)
GOLDEN = sorted(FILES.glob("*.json"))

pytestmark = pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)


def programs(golden: Golden) -> dict[str, Program]:
    """What runs the instances of a file, by the name of the definition."""
    stored_ones = [stored(each.row, StoredDefinition) for each in golden.definitions]
    own = [Program(each(), JsonCodec(), is_own=True) for each in OWN_DECIDERS]
    return {name: program for (name, _), program in graph_programs(stored_ones).items()} | {
        **{each.type: each for each in own},
        **{each.type: Program(each(), JsonCodec()) for each in DECIDERS},
    }


def program_of(golden: Golden, life: Life) -> Program:
    """What runs an instance."""
    key = str(life.header["definition"]), str(life.header["definition_version"])
    graphs = graph_programs(stored(each.row, StoredDefinition) for each in golden.definitions)
    return graphs.get(key) or programs(golden)[key[0]]


def events_of(life: Life) -> list[StoredEvent]:
    """The events of an instance, as a store gives them."""
    return [stored(each.row, StoredEvent) for each in life.events]


def test_every_event_is_read(path: Path) -> None:
    """Each event is decoded, with the same defaults; one of the present version is written again in the same bytes."""
    golden = read(path)
    for life in golden.lives:
        program = program_of(golden, life)
        for event, fact in zip(events_of(life), life.events, strict=True):
            if event.is_system:
                continue
            value = program.decode(event)
            assert lacks(beside(event, value), fact.beside) == []
            again = program.events.encode(value)
            assert again.type == event.type
            assert again.version >= event.version
            assert again.version > event.version or again.data == event.data


def test_it_is_folded_to_the_same_state(path: Path) -> None:
    """The fold comes to the state that it came to when the events were written, unless the state is told in another way since."""
    golden = read(path)
    for life in golden.lives:
        program = program_of(golden, life)
        events = events_of(life)
        check_sequence(events, after=0)
        state, _ = folded(program, events)
        assert life.state_version <= program.state_version
        if life.state_version == program.state_version:
            assert state == life.state


def test_it_has_come_to_the_same_end(path: Path) -> None:
    """Status, reason and number of events are those of the row that was stored."""
    golden = read(path)
    for life in golden.lives:
        program, events = program_of(golden, life), events_of(life)
        status = program.status(program.replay(program.initial(), events))
        found = {"status": status.word, "reason": status.reason, "version": len(events)}
        assert lacks(life.header, found) == []
        assert status.is_terminal == (life.header["ended_at"] is not None)


def test_the_rows_are_made_again(path: Path) -> None:
    """Steps, questions, waits and dead letters, made from the events, are those that were stored."""
    golden = read(path)
    for life in golden.lives:
        _, told = folded(program_of(golden, life), events_of(life))
        assert {name: len(rows) for name, rows in told.items()} == {name: len(rows) for name, rows in life.rows.items()}
        assert lacks(told, life.rows) == []


def test_snapshots_are_restored(path: Path) -> None:
    """A snapshot that this code takes for good is the fold of the events that it stands for."""
    golden = read(path)
    for life in golden.lives:
        program, kept = program_of(golden, life), life.snapshot
        if kept is not None and kept.state_version == program.state_version:
            replayed = program.replay(program.initial(), events_of(life)[: kept.version])
            assert plain(program.restore(body(kept.data))) == plain(replayed)


def test_definitions_are_read(path: Path) -> None:
    """A stored graph is read with the same defaults, and has the hash that it was published under: publishing it again changes nothing."""
    for each in read(path).definitions:
        definition = stored(each.row, StoredDefinition)
        graph = read_graph(definition.compiled)
        assert lacks(whole(graph), each.graph) == []
        assert graph.hash == definition.hash
        assert (graph.name, graph.version, graph.kind) == (definition.name, definition.version, definition.kind)
        assert read_graph(graph_bytes(graph)) == graph


def test_work_that_waits_is_read(path: Path) -> None:
    """Effects, timers and messages say what they said, for whom they are done, and how effects are delivered."""
    golden = read(path)
    known = programs(golden)
    for work in golden.effects:
        effect = stored(work.row, StoredEffect)
        said = known[effect.definition].effects.decode(effect.type, effect.version, effect.data)
        check_work(work, said, effect.context)
        assert lacks(delivery(effect), work.options) == []
    for work in golden.timers:
        timer = stored(work.row, StoredTimer)
        check_work(work, known[timer.definition].commands.decode(timer.type, timer.version, timer.data), timer.context)
    for work in golden.messages:
        message = stored(work.row, StoredMessage)
        said = known[message.address.definition].commands.decode(message.type, message.version, message.data)
        check_work(work, said, message.context)


def check_work(work: Work, said: object, context: bytes | None) -> None:
    """Compare what was read with what the file says."""
    assert lacks(whole(said), work.says) == []
    assert lacks(asked(context), work.asked) == []


def test_dead_letters_are_read(path: Path) -> None:
    """What gave up can still be tried again: its command or effect is decoded."""
    golden = read(path)
    known = programs(golden)
    for each in golden.letters:
        letter = stored(each, DeadLetterRecord)
        asked(letter.context)
        if letter.source in {"effect", "timer", "inbox"}:
            program = known[letter.definition]
            words = program.effects if letter.source == "effect" else program.commands
            words.decode(letter.type, letter.version, letter.data)
