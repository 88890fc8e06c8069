"""A document as a run holds it: a part of its state, so that an edit, the check of its window and what follows from it are one decision."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from standfast.kernel.actor import Actor, Principal

Data = dict[str, object]
Verdict = Literal["", "approved", "declined", "void"]
"""Not decided yet; decided for it, or in another way that an edge routes; or decided about something that is no more."""


DRIFT = "drift"
"""The act of telling that another system has changed a document behind its back."""
CHANGED_ELSEWHERE = "changed elsewhere"
"""Under which name that act has the fields."""
ALL_FIELDS = "*"
"""Among the fields that are sealed: all of them, but for those that the workflow writes or computes."""


class Intent(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """The transition that was asked for last, and in whose name its way is gone."""

    transition: str
    """Empty as long as nobody has asked for one: whoever created the document stands here then."""
    by: str
    kind: Principal = "user"
    on_behalf_of: str = ""
    roles: list[str] = []
    capabilities: list[str] = []
    reason: str = ""
    is_pending: bool = True
    """Whether the state has not been left by it yet."""
    asked: str = ""
    """The request with which they asked: what they may do later is looked up by it."""
    before: list[str] = []
    """Those who asked for it before this actor did, because the way was denied to them: they do not approve it either."""

    @property
    def actor(self) -> Actor:
        """Who asked, with what they could do then."""
        return Actor(
            id=self.by,
            kind=self.kind,
            roles=frozenset(self.roles),
            capabilities=frozenset(self.capabilities),
            on_behalf_of=self.on_behalf_of,
        )


class Approval(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """An approval that no gate has used up yet."""

    node: str
    version: int
    """The version of the document that is asked about."""
    verdict: Verdict = ""
    given: list[int] = []
    """The decisions on it that stand, by their numbers."""
    token: str = ""
    """The token that it was asked for."""
    entry: str = ""
    """What tells the entries of the lists that it was asked in; empty outside of all."""
    is_kept: bool = False
    """Whether it was given on an earlier way through its slot, and this one has not come to it yet."""


def lane_of(token: str) -> str:
    """The places of the branches that a token is in: the same ones each time the splits are gone through."""
    return "/".join(each.rpartition(".")[2] for each in token.split("/")[1:])


class Refused(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A rejection on its way from a slot to the gate."""

    slot: str
    step: int
    node: str
    by: str = ""
    reason: str = ""


class StandingRefusal(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A refusal that an edge has routed on inside of its slot. The gate stays closed until an approval behind it on its way is given."""

    node: str
    token: str
    """The token that was refused. Where branches meet, the refusal goes on with the token that was split."""
    outcome: str
    by: str = ""
    """Empty if no person refused it: a rule did, or the time was over."""
    reason: str = ""
    answered: list[str] = []
    """Branches in which an approval was given since. They answer the refusal once they have met."""


MOST_MADE: Final = 20
"""How many documents may have been made one after the other, each by a step of the one before, without a person between them."""


class Document(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A document, and how far its workflow is with it."""

    type: str
    id: str
    status: str
    version: int = 1
    """Counts the mutations that wrote it; decisions and transitions are none."""
    data: Data = {}
    depth: int = 0
    """How many documents stand between it and whoever caused it: each has made the next one by a step."""
    amended_from: str = ""
    amended_at: str = ""
    """The status in which the document was amended. The amendment is in force once a gate has led it there; empty then, and if there is none."""
    superseded_by: str = ""
    org: Data = {}
    """The settings of the organisation as a decision read them last."""
    org_version: int = 0
    related: dict[str, Data] = {}
    """What decisions read last of the documents that it refers to, by field."""
    sources: dict[str, str] = {}
    """Which documents these were, by field, each with its version: `customer/C-1@7`."""
    intent: Intent | None = None
    approvals: dict[int, Approval] = {}
    """Those of the present way to the next gate, by step."""
    refused: Refused | None = None
    refusals: dict[int, StandingRefusal] = {}
    """Those of this visit of a slot that no approval has answered yet, by step."""
    round: int = 1
    """Counts the ways from a state to the rest."""
    updated_by: str = ""
    """Who has created, changed or moved it last."""
    is_back: bool = False
    """Whether it came to its status by a rejection, or by a transition that is no way on, such as a recall."""
    is_resting: bool = False
    """Whether the round is completed, and nothing is under way."""
    sequence: int = 0
    """Counts what the audit tells of it."""
    hands: list[str] = []
    """Those who wrote its content, and for whom they did: nobody approves what they wrote themselves."""
    wrote: dict[str, list[str]] = {}
    """The fields that each of them wrote; somebody who is not in it counts as the author of all."""

    way: str = ""
    """The transition whose way is gone, or was last."""
    timed_out: str = ""
    """The status whose time was over, so that this way began: nobody has asked for it. Empty if somebody did, or it began by itself."""
    drift_at: datetime | None = None
    """When the first of that was told."""
    drift: str = ""
    """What another system has told of changes behind its back that nobody was asked to look at yet: it is held for that once it goes on."""
    sealed: list[str] = []
    """The fields that approvals cover which gates have used up since people could edit the document last; `ALL_FIELDS` for all of them."""
    used: dict[int, str] = {}
    """What has used up the approvals of this round, by step, in words."""

    def kept(self, node: str, token: str, entry: str) -> Approval | None:
        """The approval that a token which comes to a node finds in force, from an earlier way through the slot, about the same entries."""
        found = (each for each in self.approvals.values() if each.is_kept and each.node == node)
        return next((each for each in found if lane_of(each.token) == lane_of(token) and each.entry == entry), None)

    def authors(self, covers: Sequence[str] = ()) -> set[str]:
        """Whose document it is: those who wrote these fields, or any if none is named, and those who asked for the transition whose way is gone."""
        asked = set() if self.intent is None else {self.intent.by, self.intent.on_behalf_of, *self.intent.before}
        return {*(each for each in self.hands if not covers or self._wrote_any(each, covers)), *asked} - {""}

    def _wrote_any(self, name: str, fields: Sequence[str]) -> bool:
        known = self.wrote.get(name)
        return known is None or not set(known).isdisjoint(fields)

    def own(self) -> Data:
        """What is known of it besides its content."""
        known: Data = {"id": self.id, "type": self.type, "status": self.status, "version": self.version}
        return {
            **known,
            "amended_from": self.amended_from or None,
            "superseded_by": self.superseded_by or None,
        }

    def names(self) -> Data:
        """What expressions read as `entity`."""
        return {**self.data, **self.own()}
