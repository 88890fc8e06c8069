"""What those who look at lists are told: once for all of them, and of a flood the newest of each run alone."""

from __future__ import annotations

import msgspec

from standfast.features.access.views import Written
from standfast.http.wire.broadcaster import FLOOD, News, StreamSubscriber, changes
from standfast.kernel.ids import InstanceId, uuid_of

RUNS = [InstanceId(uuid_of(number)) for number in range(1, 4)]


def happened(count: int) -> list[Written]:
    """So many events, of the runs in turn."""
    return [
        Written(
            position=1000 + number,
            tenant="acme",
            instance=RUNS[number % len(RUNS)],
            sequence=number // len(RUNS) + 1,
            type="step_started",
            definition="order",
        )
        for number in range(count)
    ]


def told(sent: bytes) -> list[tuple[int, object]]:
    """The places of events, and what they say."""
    frames = [each.split(b"\n") for each in sent.split(b"\n\n")[:-1]]
    assert all(event == b"event: changed" for _, event, _ in frames)
    return [(int(place[4:]), msgspec.json.decode(data[6:])) for place, _, data in frames]


def test_of_a_flood_each_run_is_told_once() -> None:
    """Events are told one by one until there are too many to look at; then each run is told once, with its newest event, in order."""
    few, many = happened(FLOOD), happened(FLOOD + 2)
    assert [place for place, _ in told(changes(few))] == [each.position for each in few]
    assert told(changes(many)) == [
        (
            each.position,
            {"id": str(each.instance), "definition": "order", "sequence": each.sequence, "type": "step_started"},
        )
        for each in many[-3:]
    ]


def test_all_who_listen_are_sent_the_same() -> None:
    """News is written down once, however many are told of it."""
    news = News(happened(2))
    ears = [StreamSubscriber("acme", None, backlog=10) for _ in range(2)]
    for ear in ears:
        ear.hear(news)
    ((first,), (second,)) = (ear.take() for ear in ears)
    assert first.told is second.told


def test_only_who_does_not_keep_up_is_behind() -> None:
    """What comes at once may be more than is kept for who is slow; a second piece on top of it is too much."""
    ear = StreamSubscriber("acme", None, backlog=5)
    ear.hear(News(happened(9)))
    assert (ear.is_behind, len(ear.take())) == (False, 1)
    ear.hear(News(happened(3)))
    ear.hear(News(happened(3)))
    assert (ear.is_behind, ear.take()) == (True, [])


def test_what_somebody_has_is_not_told_again() -> None:
    """Behind a position there is what was written behind it; the bytes that all share are made again for nobody who has nothing of it."""
    news = News(happened(4))
    first, *_, last = news.items
    assert news.behind(first.position - 1) is news
    assert list(news.behind(first.position).items) == list(news.items[1:])
    assert news.behind(last.position).told == b""
