"""Who is to be asked, as a definition or an approval chain says it, and what they have to agree on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

Agree = Literal["any", "all", "n", "weight"]
"""How many have to be for it: the first one, all of them, at least a number of them, or as many as weigh enough."""
AGREES: tuple[Agree, ...] = get_args(Agree)

Vote = Literal["for", "against", "abstained"]
"""What a decision counts as: yes, no, or neither, in whatever words a definition has for them."""
VOTES: tuple[Vote, ...] = get_args(Vote)

Pick = Literal["all", "any", "in_turn"]
PICKS: tuple[Pick, ...] = get_args(Pick)

USER, ROLE, RULE, CHAIN = "user", "role", "rule", "chain"
"""The resolvers that the machine knows; every other one is the engine's, or the application's."""


HEAVIEST = 1_000_000
"""The most that one of those who are asked can weigh."""


class Ask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """Who is to be asked, before anybody has looked."""

    by: str
    """The resolver that finds them: `user`, `role`, `rule`, `manager`, `chain`, or one that the application registers by name."""
    of: str = ""
    """What it is given: the id of a user, the name of a role or chain, the text of a rule; empty for a manager means the requester's."""
    rule: dict[str, object] | None = None
    """The stored form of a rule, which yields the id of a user, `role:<name>`, or a list of such."""
    weight: int = 1
    """What a decision of each of them weighs."""
    pick: Pick = "any"
    """Of several: each of them is asked, or they share one question, or one of them is asked, in turn (round robin)."""
    via: str = ""
    """Why it is them, in words, where a rule has named them; empty otherwise."""

    @property
    def is_direct(self) -> bool:
        """Whether it names those who are asked, so that nobody has to look."""
        return self.by == USER or (self.by == ROLE and self.pick == "any")

    @property
    def words(self) -> str:
        """The same as people write it."""
        return f"{self.by}:{self.of}" if self.of else self.by


class Stage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One stage of an approval chain: it is asked once the stage before has agreed."""

    name: str = ""
    asks: list[Ask]
    agree: Agree = "any"
    least: int = 0
    """How many, or how much weight, `n` and `weight` take."""


def agreement_of_list(agree: Agree | None, resolvers: Sequence[str]) -> Agree | None:
    """Return the rule that a new definition stores for those whom it asks, given the resolver of each.

    All places of a list count unless its author says otherwise. Graphs that were stored before take a list of roles alone as `any`, so
    for such a list the rule is stored. For other lists it is not, and their graphs keep their hashes.
    """
    is_of_roles = len(resolvers) > 1 and set(resolvers) == {ROLE}
    return "all" if agree is None and is_of_roles else agree


def agreement_in_words(agree: Agree, least: int) -> str:
    """What has to be agreed, for those who are asked."""
    return {
        "any": "any of them",
        "all": "all of them",
        "n": f"at least {least} of them",
        "weight": f"a weight of at least {least}",
    }[agree]
