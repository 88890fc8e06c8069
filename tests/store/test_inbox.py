"""The inbox: every message once, and those of one target in the order of acceptance, whatever happens to the first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from standfast.store.records.instances import InboxClaim, StoredMessage, Word
from support.desks import Desk
from support.rows import (
    NOW,
    OTHER_TENANT,
    WORDS,
    born,
    letter,
    message,
    moved,
    new_id,
)

HOLD = timedelta(seconds=10)


def taken(desk: Desk, at: timedelta = timedelta(0), limit: int = 10) -> list[StoredMessage]:
    """The messages that are claimed at an instant."""
    return desk.inbox.claim(NOW + at, words=WORDS, hold=HOLD, limit=limit)


def said(messages: Iterable[StoredMessage]) -> list[str]:
    """What messages say."""
    return [each.data.decode() for each in messages]


def accept(desk: Desk, *texts: str) -> list[int]:
    """Put messages into the inbox: the first letter of each text is its target."""
    return desk.writer.accept([message(text[0], text) for text in texts], NOW)


@pytest.mark.row("D-106")
def test_an_accepted_message_waits_for_its_turn(desk: Desk) -> None:
    """A message comes with all that was accepted, under the id that accepting it gave."""
    identity = new_id()
    sent = [
        message("o-1", "by key", command_id="c-1", comment="please"),
        message(instance=identity, text="by id", version=2),
    ]
    ids = desk.writer.accept(sent, NOW)
    found = taken(desk)
    assert [each.id for each in found] == ids
    assert [(each.address, each.type, each.version, each.data) for each in found] == [
        (each.address, each.type, each.version, each.data) for each in sent
    ]
    assert [(each.command_id, each.actor, each.comment) for each in found] == [
        ("c-1", "ada", "please"),
        ("", "ada", ""),
    ]


def test_a_message_tells_how_its_target_begins(desk: Desk) -> None:
    """A message that starts an instance names its parent and the version that it is pinned to; others name neither."""
    parent, child = new_id(), new_id()
    start = message(instance=child, text="begin", parent=parent, definition_version="7")
    desk.writer.accept([start, message("o-1", "plain")], NOW)
    desk.born(born(messages=[start]))
    found = taken(desk)
    assert [(each.parent, each.definition_version) for each in found] == [(parent, "7"), (None, ""), (parent, "7")]


def test_messages_of_a_commit_are_accepted_with_it(desk: Desk) -> None:
    """What a decision tells other instances lies in their inbox when it is committed, in the order of the decision."""
    head = desk.born(born(messages=[message("a", "a1"), message("b", "b1"), message("a", "a2")]))
    desk.commit(moved(head, messages=[message("a", "a3")]))
    assert said(taken(desk)) == ["a1", "b1", "a2", "a3"]


@pytest.mark.row("D-109")
def test_messages_come_in_the_order_of_acceptance(desk: Desk) -> None:
    """Over all targets the oldest come first, at most as many as were asked for."""
    accept(desk, "a1", "b1", "a2", "c1")
    assert said(taken(desk, limit=3)) == ["a1", "b1", "a2"]
    assert said(taken(desk)) == ["c1"]


@pytest.mark.row("D-109")
def test_nobody_gets_past_a_message_in_hand(desk: Desk) -> None:
    """While somebody holds a message of a target, nobody else gets a later one of it; other targets go on."""
    accept(desk, "a1", "a2")
    assert said(taken(desk, limit=1)) == ["a1"]
    accept(desk, "a3", "b1")
    second = desk.another()
    assert said(taken(second)) == ["b1"]
    assert said(taken(second)) == []


@pytest.mark.row("D-109")
def test_two_drainers_keep_the_order(desk: Desk) -> None:
    """Whoever delivers, the messages of each target are delivered in order and once."""
    accept(desk, *(f"{target}{number}" for number in range(4) for target in "abc"))
    drainers = [desk, desk.another()]
    delivered: list[str] = []
    for turn in range(12):
        for one in taken(drainers[turn % 2], limit=2):
            desk.commit(finished=(one.claim,))
            delivered += said([one])
    assert [[text for text in delivered if text[0] == target] for target in "abc"] == [
        [f"{target}{number}" for number in range(4)] for target in "abc"
    ]


@pytest.mark.row("D-109")
def test_the_head_of_the_line_blocks_its_target(desk: Desk) -> None:
    """After a failed delivery those behind wait for the retry, also those that were in hand; then they come in order."""
    accept(desk, "a1", "a2", "b1")
    first = taken(desk)[0]
    assert desk.inbox.retry(first.claim, error="not now", until=NOW + timedelta(seconds=30))
    accept(desk, "a3")
    assert said(taken(desk.another(), timedelta(seconds=29))) == ["b1"]
    again = taken(desk, timedelta(seconds=30))
    assert said(again) == ["a1", "a2", "a3"]
    assert [(each.attempts, each.error) for each in again] == [(1, "not now"), (0, ""), (0, "")]


@pytest.mark.row("D-109")
def test_a_hold_ends(desk: Desk) -> None:
    """What was held and not delivered is there again after the hold, in order and with what came meanwhile."""
    accept(desk, "a1", "a2")
    taken(desk)
    accept(desk, "a3")
    assert said(taken(desk.another(), HOLD - timedelta(microseconds=1))) == []
    assert said(taken(desk.another(), HOLD)) == ["a1", "a2", "a3"]


def test_a_delivered_message_frees_the_next(desk: Desk) -> None:
    """When the first is delivered and the second was not in hand, the second can be taken at once."""
    accept(desk, "a1", "a2")
    (first,) = taken(desk, limit=1)
    desk.commit(finished=(first.claim,))
    assert said(taken(desk.another())) == ["a2"]


def test_tenants_do_not_wait_for_one_another(desk: Desk) -> None:
    """The same key of another tenant is another target."""
    ids = desk.writer.accept([message("a", "ours"), message("a", "theirs", tenant=OTHER_TENANT)], NOW)
    (first,) = taken(desk, limit=1)
    assert desk.inbox.retry(first.claim, error="", until=NOW + HOLD)
    assert [each.id for each in taken(desk)] == ids[1:]


def test_giving_up_frees_the_target(desk: Desk) -> None:
    """A buried message goes to the dead letters, in one step, and blocks nobody any longer."""
    accept(desk, "a1", "a2")
    (first,) = taken(desk, limit=1)
    assert desk.inbox.bury(first.claim, letter("inbox", name=first.target, key="a"))
    assert said(taken(desk)) == ["a2"]
    assert [each.source for each in desk.reader.dead_letters()] == ["inbox"]


def test_a_message_that_is_gone_stays_gone(desk: Desk) -> None:
    """What was delivered can neither be tried again nor buried."""
    accept(desk, "a1")
    gone = InboxClaim(10**9)
    assert not desk.inbox.retry(gone, error="", until=NOW)
    assert not desk.inbox.bury(gone, letter("inbox"))
    assert desk.reader.dead_letters() == []


@pytest.mark.row("D-107")
def test_the_depth_is_what_waits(desk: Desk) -> None:
    """The depth counts messages until they are delivered, held or not."""
    assert desk.inbox.depth() == 0
    accept(desk, "a1", "b1")
    first, _ = taken(desk)
    assert desk.inbox.depth() == 2
    desk.commit(finished=(first.claim,))
    assert desk.inbox.depth() == 1


def test_messages_for_unknown_definitions_stay_untouched(desk: Desk) -> None:
    """A process takes only messages that it can read; none at all if it can read none."""
    accept(desk, "a1")
    assert desk.inbox.claim(NOW, words=[], hold=HOLD, limit=9) == []
    for strange in (Word("refund", "Tell", 1), Word("order", "Tell", 2), Word("order", "Ask", 1)):
        assert desk.inbox.claim(NOW, words=[strange], hold=HOLD, limit=9) == []
    assert said(desk.inbox.claim(NOW, words=WORDS, hold=HOLD, limit=9)) == ["a1"]


def test_a_message_behind_one_that_cannot_be_read_waits_with_it(desk: Desk) -> None:
    """No message overtakes another of the same target, also where a process could read the later one alone."""
    new = message(key="a", text="new", type="Ask")
    desk.writer.accept([message(key="a", text="first"), new, message(key="a", text="last"), message(key="b")], NOW)
    assert said(desk.inbox.claim(NOW, words=WORDS, hold=HOLD, limit=9)) == ["first", "hello"]
    desk.commit(finished=(InboxClaim(1), InboxClaim(4)))
    assert desk.inbox.claim(NOW + 2 * HOLD, words=WORDS, hold=HOLD, limit=9) == []
    both = [*WORDS, Word("order", "Ask", 1)]
    assert said(desk.inbox.claim(NOW + 2 * HOLD, words=both, hold=HOLD, limit=9)) == ["new", "last"]


def test_the_next_retry_is_told(desk: Desk) -> None:
    """When the earliest message that failed is due again; None while none has failed."""
    accept(desk, "a1", "b1", "c1")
    first, second, _ = taken(desk)
    assert desk.inbox.next_at(NOW) is None
    desk.inbox.retry(first.claim, error="", until=NOW + 2 * HOLD)
    desk.inbox.retry(second.claim, error="", until=NOW + HOLD)
    assert desk.inbox.next_at(NOW) == NOW + HOLD
    assert desk.inbox.next_at(NOW + HOLD) == NOW + 2 * HOLD


def test_the_inbox_goes_by_the_databases_clock(desk: Desk) -> None:
    """Without an instant the database's own clock judges holds and retries."""
    accept(desk, "a1")
    (first,) = desk.inbox.claim(None, words=WORDS, hold=timedelta(hours=1), limit=9)
    assert desk.inbox.claim(None, words=WORDS, hold=HOLD, limit=9) == []
    desk.inbox.retry(first.claim, error="", until=desk.store.now() - HOLD)
    assert said(desk.inbox.claim(None, words=WORDS, hold=HOLD, limit=9)) == ["a1"]
