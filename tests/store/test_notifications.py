"""Lists of what people are told: everything once, newest first, each to whom it is for."""

from __future__ import annotations

from functools import partial

import msgspec

from standfast.store.ports.notifications import NewNotification, Reader, Recipient
from support.desks import Desk
from support.rows import LATER, NOW, OTHER_TENANT, new_id
from support.waiting import together

ANN, CLERKS = Recipient("user", "ann"), Recipient("role", "clerk")
LAST = 2**63 - 1


def told(key: str, **fields: object) -> NewNotification:
    """Something that Ann is told."""
    base = NewNotification(
        tenant="default",
        key=key,
        kind="user",
        recipient="ann",
        instance=new_id(),
        step=3,
        subject="Order 7",
        body="Zoë",
    )
    return msgspec.structs.replace(base, **fields)


def keys(
    desk: Desk, of: Recipient = ANN, *, tenant: str = "default", unread: bool = False, before: int = LAST
) -> list[str]:
    """A page of a list, by keys."""
    found = desk.store.notifications().page(tenant, of, who=Reader("ann"), unread=unread, before=before, limit=2)
    return [each.key for each in found]


def test_what_was_told_comes_back_whole(desk: Desk) -> None:
    """All that was said is there, with the time at which it was."""
    side = desk.store.notifications()
    new = told("a")
    assert side.add(new, NOW)
    (found,) = side.page("default", ANN, who=Reader("ann"), unread=False, before=LAST, limit=9)
    assert {name: getattr(found, name) for name in NewNotification.__struct_fields__} == msgspec.structs.asdict(new)
    assert (found.created_at, found.read_at) == (NOW, None)


def test_everything_is_told_once(desk: Desk) -> None:
    """Whatever has a key that was told stays as it is, also when many tell it at the same moment; another tenant's keys are its own."""
    side = desk.store.notifications()
    assert side.add(told("a"), NOW)
    assert not side.add(told("a", subject="other"), LATER)
    assert side.add(told("a", tenant=OTHER_TENANT), LATER)
    together(*[partial(desk.store.notifications().add, told("b"), NOW) for _ in range(4)])
    assert keys(desk) == ["b", "a"]
    assert side.page("default", ANN, who=Reader("ann"), unread=False, before=LAST, limit=9)[1].subject == "Order 7"


def test_lists_have_pages_newest_first(desk: Desk) -> None:
    """The next page begins behind the last one of the page before."""
    side = desk.store.notifications()
    for key in "abcde":
        side.add(told(key), NOW)
    first = side.page("default", ANN, who=Reader("ann"), unread=False, before=LAST, limit=2)
    assert [each.key for each in first] == ["e", "d"]
    assert keys(desk, before=first[-1].id) == ["c", "b"]


def test_lists_are_of_one_recipient_of_one_tenant(desk: Desk) -> None:
    """A role is not a user of the same name, and nothing of another tenant is seen, counted or marked."""
    side = desk.store.notifications()
    side.add(told("user"), NOW)
    side.add(told("role", kind="role"), NOW)
    side.add(told("clerks", kind="role", recipient="clerk"), NOW)
    side.add(told("theirs", tenant=OTHER_TENANT), NOW)
    assert (keys(desk), keys(desk, CLERKS), keys(desk, tenant=OTHER_TENANT)) == (["user"], ["clerks"], ["theirs"])
    assert side.count_unread("default", ANN, who=Reader("ann")) == 1
    (theirs,) = side.page(OTHER_TENANT, ANN, who=Reader("ann"), unread=False, before=LAST, limit=9)
    assert not side.mark_read("default", ANN, theirs.id, LATER, who=Reader("ann"))
    assert side.mark_all_read("default", ANN, LATER, who=Reader("ann")) == 1
    assert side.count_unread(OTHER_TENANT, ANN, who=Reader("ann")) == 1


def test_what_was_read_stays_read_since_the_first_time(desk: Desk) -> None:
    """Reading again is no news; what was not read can be asked for alone."""
    side = desk.store.notifications()
    for key in "ab":
        side.add(told(key), NOW)
    number = side.page("default", ANN, who=Reader("ann"), unread=False, before=LAST, limit=9)[0].id
    assert side.mark_read("default", ANN, number, NOW, who=Reader("ann"))
    assert side.mark_read("default", ANN, number, LATER, who=Reader("ann"))
    assert [
        each.read_at for each in side.page("default", ANN, who=Reader("ann"), unread=False, before=LAST, limit=9)
    ] == [
        NOW,
        None,
    ]
    assert keys(desk, unread=True) == ["a"]
    assert side.count_unread("default", ANN, who=Reader("ann")) == 1


def test_what_a_role_was_told_each_reads_for_themselves(desk: Desk) -> None:
    """What one of them has read is unread for the others; read again it stays read since the first time."""
    side = desk.store.notifications()
    for key in "ab":
        side.add(told(key, kind="role", recipient="clerk"), NOW)
    number = side.page("default", CLERKS, who=Reader("ann"), unread=True, before=LAST, limit=9)[0].id
    assert side.mark_read("default", CLERKS, number, NOW, who=Reader("ann"))
    assert side.mark_read("default", CLERKS, number, LATER, who=Reader("ann"))
    assert not side.mark_read(OTHER_TENANT, CLERKS, number, LATER, who=Reader("ann"))
    for reader, unread, read_at in (("ann", ["a"], [NOW, None]), ("bob", ["b", "a"], [None, None])):
        found = side.page("default", CLERKS, who=Reader(reader), unread=True, before=LAST, limit=9)
        assert [each.key for each in found] == unread
        everything = side.page("default", CLERKS, who=Reader(reader), unread=False, before=LAST, limit=9)
        assert [each.read_at for each in everything] == read_at
        assert side.count_unread("default", CLERKS, who=Reader(reader)) == len(unread)
    assert side.mark_all_read("default", CLERKS, LATER, who=Reader("ann")) == 1
    assert [side.count_unread("default", CLERKS, who=Reader(each)) for each in ("ann", "bob")] == [0, 2]


def test_what_was_told_by_name_and_by_role_is_found_once(desk: Desk) -> None:
    """The first of one occasion stands in the lists of whoever has all of them; others who have the role find it in theirs."""
    side, run = desk.store.notifications(), new_id()
    both = Reader("ann", ("clerk", "boss"))
    for kind, recipient in (("user", "ann"), ("role", "clerk"), ("role", "boss")):
        side.add(told(f"{kind}:{recipient}", kind=kind, recipient=recipient, instance=run, occasion="1/opened:1"), NOW)
    side.add(told("later", kind="role", recipient="clerk", instance=run, occasion="1/reminded:1"), NOW)
    side.add(told("plain", kind="role", recipient="clerk", instance=run), NOW)

    def found(who: Reader, of: Recipient) -> list[str]:
        return [each.key for each in side.page("default", of, who=who, unread=False, before=LAST, limit=9)]

    assert [found(both, each) for each in (ANN, CLERKS, Recipient("role", "boss"))] == [
        ["user:ann"],
        ["plain", "later"],
        [],
    ]
    assert found(Reader("bob", ("clerk",)), CLERKS) == ["plain", "later", "role:clerk"]
    assert [side.count_unread("default", each, who=both) for each in (ANN, CLERKS)] == [1, 2]


def test_a_list_of_a_role_is_without_what_a_reader_is_kept_out_of(desk: Desk) -> None:
    """It is not in a page, does not count, and cannot be read, for whoever is kept out and for those who act for them; others find it."""
    side, wanted = desk.store.notifications(), {"kind": "role", "recipient": "clerk"}
    side.add(told("a", **wanted, kept_out=("ann", "cid")), NOW)
    side.add(told("b", **wanted, kept_out=("bob",)), NOW)

    def found(who: Reader) -> tuple[list[str], list[str], int]:
        pages = [
            [each.key for each in side.page("default", CLERKS, who=who, unread=unread, before=LAST, limit=9)]
            for unread in (False, True)
        ]
        return pages[0], pages[1], side.count_unread("default", CLERKS, who=who)

    first, second = (
        side.page("default", CLERKS, who=Reader("dee"), unread=False, before=LAST, limit=9)[n] for n in (1, 0)
    )
    assert (first.kept_out, second.kept_out) == (("ann", "cid"), ("bob",))
    assert found(Reader("dee")) == (["b", "a"], ["b", "a"], 2)
    assert found(Reader("ann")) == found(Reader("eve", (), "cid")) == (["b"], ["b"], 1)
    assert found(Reader("bob")) == (["a"], ["a"], 1)
    assert not side.mark_read("default", CLERKS, first.id, LATER, who=Reader("ann"))
    assert not side.mark_read("default", CLERKS, first.id, LATER, who=Reader("eve", (), "cid"))
    assert side.mark_all_read("default", CLERKS, LATER, who=Reader("ann")) == 1
    assert found(Reader("ann")) == (["b"], [], 0)
