"""What a run has the engine itself do, where a step has a handler do it: errands. They go to handlers that every worker has.

An errand asks the world something that a decision cannot: who has a role, which events came early. Its answer comes back as a command.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal, TypeAlias

import msgspec

from standfast.graph.values.approver_rules import Ask
from standfast.kernel.codec.message_types import message

Data = dict[str, object]

OWN_HANDLER: Final = "$engine"
"""The handler of errands that need the database alone; like the others here, no definition can name it."""
PEOPLE_HANDLER: Final = "$people"
"""The handler of those that ask a directory or a resolver of the application, which may hang."""
NOTICE_HANDLER: Final = "$notices"
"""The handler of those that send something by a channel, which may hang too and keeps nobody else waiting then."""


class Person(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Somebody who is asked: one user, or whoever has a role."""

    kind: Literal["user", "role"] = "user"
    name: str
    weight: int = 1
    via: str = ""
    """Why it is them, in words: `role finance`, `manager of ann`, `added by bob`."""
    for_: str = msgspec.field(default="", name="for")
    """Whom they stand in for; empty if they are asked themselves."""
    role: str = ""
    """The role by which one is asked who is asked by name, or by which the one they stand in for is: it has to hold when they decide."""


_VIA_ROLE = "role "


def role_of_place(person: Person) -> str:
    """The role by which the owner of a place is asked; empty if by name. Rows, and states of before, say it in words alone."""
    return person.role or (person.via.removeprefix(_VIA_ROLE) if person.via.startswith(_VIA_ROLE) else "")


def picked_by(person: Person) -> str:
    """The role as whose holder a user is asked themselves; empty if they are asked by name, or have the place from another."""
    return "" if person.for_ else role_of_place(person)


class _Errand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Something for the engine itself to do."""

    handler: ClassVar[str] = OWN_HANDLER


@message(name="FindPeople")
class FindPeople(_Errand, frozen=True, kw_only=True):
    """Find out who is to be asked; the answer is PeopleFound."""

    handler: ClassVar[str] = PEOPLE_HANDLER

    step: int
    node: str
    asks: list[Ask]
    requester: str = ""
    """Who started the run; empty if the engine did."""
    data: Data = {}
    """What resolvers of the application may look at: the data of the token."""
    barred: list[str] = []
    """Those who may not decide: a role is none that somebody has if nobody else has it."""
    in_person: bool = False
    """Whether nobody is asked in the place of another."""


@message(name="ReviewPeople")
class ReviewPeople(_Errand, frozen=True, kw_only=True):
    """Find out who of those that an open question asks cannot decide now; the answer is PeopleReviewed."""

    handler: ClassVar[str] = PEOPLE_HANDLER

    step: int
    node: str
    people: list[Person]
    requester: str = ""
    """Who started the run; empty if the engine did."""
    hands: list[list[str]] = []
    """For each of them, those who have handed the question on to them, the first one first; empty if nobody has."""
    lent: list[dict[str, str]] = []
    """For each of them, who of those has done so in the place of another, by the name of that one; empty if nobody has."""
    barred: list[str] = []
    """Those who may not decide, whatever their roles are."""
    decided: list[str] = []
    """Those who have decided, and do not decide once more, whatever their roles are."""
    in_person: bool = False
    """Whether nobody decides in the place of another."""


class Sought(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event that is looked for."""

    event: str
    key: str = ""
    match: Data | None = None
    """The stored condition that it has to fulfil; None means that any will do."""


@message(name="FindEvents")
class FindEvents(_Errand, frozen=True, kw_only=True):
    """Find events that were published before somebody waited for them; the answer is TakeEvents."""

    step: int
    sought: list[Sought]
    taken: list[str] = []
    """The ids of those that the run has had."""
    data: Data = {}
    """What the conditions may look at: the data of the token."""
    names: Data = {}
    """What they may look at besides, by the name that it goes by: the document of the run."""
    capability: list[str] = []
    """What the publisher of an event must be allowed to do for it to count."""
    until: str = ""
    """The time of the step was over then, as ISO 8601: only events from before count, and without one the step is told. Empty while it lasts."""


class FullWords(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a notice says to those who may see the fields that it reads."""

    subject: str
    body: str = ""
    html: str = ""
    audience: list[list[str]]
    """Sets of roles; whoever is told needs one role of each."""


@message(name="Notify")
class Notify(_Errand, frozen=True, kw_only=True):
    """Tell somebody something by one channel; what became of it is told by EndNotice, if it failed or is waited for."""

    handler: ClassVar[str] = NOTICE_HANDLER

    step: int
    node: str
    key: str
    """The same whenever the same is to be told to the same by the same channel, and different from every other of the run."""
    channel: str
    kind: Literal["user", "role"] = "user"
    to: str
    """The id of a user, an address with an @, or the name of a role."""
    subject: str
    body: str = ""
    html: str = ""
    waits: bool = False
    """Whether the step waits until it is delivered."""
    occasion: str = ""
    """What the run tells them of: the same for all recipients and channels."""
    told: list[tuple[Literal["user", "role"], str]] = []
    """Who is told the same by the same channel in notices of their own: whoever is among them gets no second one."""
    kept_out: list[str] = []
    """Who is not told although they have the role: they may not decide what it is about."""
    full: FullWords | None = None
    """What the texts above hold instead of masks; None if nothing is masked."""


@message(name="Post")
class Post(_Errand, frozen=True, kw_only=True):
    """Send a request that nobody waits for; that it could not be sent is told by EndNotice."""

    handler: ClassVar[str] = NOTICE_HANDLER

    step: int
    node: str
    key: str
    """The same for every attempt, and different from every other of the run."""
    url: str
    payload: Data = {}
    secret: str = ""
    """Where the secret is found that it is signed with; empty if it is not."""


Errand: TypeAlias = FindPeople | ReviewPeople | FindEvents | Notify | Post
