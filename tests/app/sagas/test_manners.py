"""How an organisation words its notices, by occasion, channel and language; and what people want of them."""

from __future__ import annotations

from typing import Any

import pytest

from standfast import Actor, Escalation, ForbiddenError, NotFoundError, Notice, PayloadError, Saga
from standfast.kernel.people import PREFERENCES, Principal
from standfast.notifications.templates import NotificationPreferences, manners_of, wants_of
from standfast.testing import ManualEngine
from support.engines import Place

ANN, BOB = Actor(id="ann"), Actor(id="bob")
MANNERS: dict[str, Any] = {
    "language": "en",
    "templates": {
        "opened": {
            "letter": {
                "de": {
                    "subject": "Bitte entscheiden: {subject}",
                    "body": "{definition} wartet auf {to}.",
                    "html": "<b>{subject}</b>",
                },
                "en": {"subject": "Please decide: {subject}"},
            },
            "*": {"de": {"subject": "Frage: {subject}"}},
        }
    },
    "mandatory": ["escalated"],
}


class Letters:
    """A channel that needs addresses."""

    needs_address = True

    def __init__(self) -> None:
        self.sent: list[Notice] = []

    def send(self, notice: Notice) -> None:
        """Keep it."""
        self.sent.append(notice)

    def taken(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """What was sent since the last time: to whom, in which words, and where."""
        found, self.sent = self.sent, []
        return sorted((each.to, each.subject, each.addresses) for each in found)


def opened(place: Place) -> tuple[ManualEngine, Letters]:
    """An engine that asks ann, bob and the clerks by letter, and escalates to bob; all three are in the directory."""
    engine, letters = place.engine(), Letters()
    engine.channel("letter", letters)
    people = ["user:ann", "user:bob", "role:clerk"]
    asked = Saga("leave").human(
        "sign",
        subject="Leave <of> {who}",
        ask=people,
        notify=["letter", "in_app"],
        escalate=Escalation(60, to="bob"),
    )
    engine.register(asked.build())
    for name in ("ann", "bob", "eve"):
        engine.directory.put(name, email=f"{name}@x.org")
    for name in ("ann", "eve"):
        engine.directory.grant(name, "clerk")
    return engine, letters


@pytest.mark.row("EO-31")
def test_notices_are_worded_by_occasion_channel_and_language(place: Place) -> None:
    """The template of the channel and the language of the person; what has no template is told as the workflow says it."""
    engine, letters = opened(place)
    engine.charters.publish_settings({"notices": MANNERS})
    engine.acting(ANN).directory.prefer("ann", language="de-CH")
    engine.start("leave", {"who": "sam"})
    engine.drain()
    html = {each.html for each in letters.sent if each.to == "ann"}
    bodies = {each.body for each in letters.sent if each.to == "ann"}
    assert letters.taken() == [
        ("ann", "Bitte entscheiden: Leave <of> sam", ("ann@x.org",)),
        ("bob", "Please decide: Leave <of> sam", ("bob@x.org",)),
        ("clerk", "Please decide: Leave <of> sam", ("eve@x.org",)),  # Ann has one of her own.
    ]
    assert (html, bodies) == ({"<b>Leave &lt;of&gt; sam</b>"}, {"leave wartet auf ann."})
    told = {each.to: each.subject for each in engine.acting(ANN).notifications.mine()}
    assert told == {"ann": "Frage: Leave <of> sam"}
    engine.as_tenant("rival").directory.put("ann", email="ann@rival.org")
    engine.as_tenant("rival").start("leave", {"who": "eve"})
    engine.drain()
    assert ("ann", "Leave <of> eve", ("ann@rival.org",)) in letters.taken()


@pytest.mark.row("EO-31")
def test_people_do_without_a_channel_but_not_without_what_is_mandatory(place: Place) -> None:
    """Who wants no letters is told in the application, also as one of a role; what the organisation calls mandatory comes all the same."""
    engine, letters = opened(place)
    engine.charters.publish_settings({"notices": {"mandatory": ["escalated"]}})
    for actor in (ANN, BOB):
        engine.acting(actor).directory.prefer(actor.id, off=["letter"])
    engine.start("leave", {"who": "sam"})
    engine.drain()
    assert letters.taken() == [("clerk", "Leave <of> sam", ("eve@x.org",))]
    assert len(engine.acting(BOB).notifications.mine()) == 1  # What takes the place of the letter says the same.
    engine.advance(seconds=61)
    assert letters.taken() == [("bob", "Escalated: Leave <of> sam", ("bob@x.org",))]
    engine.acting(BOB).directory.prefer("bob")
    engine.start("leave", {"who": "kim"})
    engine.drain()
    assert ("bob", "Leave <of> kim", ("bob@x.org",)) in letters.taken()
    with pytest.raises(ForbiddenError):
        engine.acting(BOB).directory.prefer("ann", off=[])
    with pytest.raises(NotFoundError):
        engine.directory.prefer("ghost")
    calls: Any = engine.directory
    for wrong in ({"language": "klingon!"}, {"language": 7}, {"off": "letter"}, {"off": [7]}, {"off": ["x" * 9999]}):
        with pytest.raises(PayloadError):
            calls.prefer("ann", **wrong)


@pytest.mark.parametrize(
    ("said", "wants"),
    [
        ({"language": "de", "off": ["letter"]}, NotificationPreferences("de", frozenset({"letter"}))),
        ({"language": 7, "off": ("letter", ["x"], 7, None)}, NotificationPreferences("", frozenset({"letter"}))),
        ({"off": "letter"}, NotificationPreferences()),
        (["letter"], NotificationPreferences()),
        (None, NotificationPreferences()),
    ],
)
def test_wishes_that_cannot_be_read_are_none(said: object, wants: NotificationPreferences) -> None:
    """A directory may say anything of a person: what is no wish is left out, and those beside it count."""
    assert wants_of(Principal(id="ann", attributes={PREFERENCES: said})) == wants
    assert wants_of(None) == NotificationPreferences()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"language": "English"}, "the language 'English'"),
        ({"templates": {"opened": {"letter": {"de": {"subject": "{amount}"}}}}}, "holes for amount"),
        ({"templates": {"opened": {"letter": {"de": {"subject": "a\nb"}}}}}, "several lines"),
        ({"templates": {"opened": {"letter": {"d": {}}}}}, "no language"),
        ({"templates": {"opened": {"letter": {"de": {"body": "x" * 20_001}}}}}, "20001 characters"),
        ({"templates": {"closed": {}}}, "cannot be read"),
        ({"mandatory": "all"}, "cannot be read"),
        (7, "cannot be read"),
    ],
)
def test_what_is_wrong_with_manners_is_told(given: object, told: str) -> None:
    """When they are published, in a sentence."""
    found, flaws = manners_of({"notices": given})
    assert found is None
    assert told in " ".join(flaws)
    with pytest.raises(PayloadError):
        ManualEngine().charters.publish_settings({"notices": given})
