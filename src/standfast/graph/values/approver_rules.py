"""Assignment of approvers in a definition or an approval chain, and their required agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

Agree = Literal["any", "all", "n", "weight"]
"""Required agreement: any one, all, at least a number (`n`), or a total weight."""
AGREES: tuple[Agree, ...] = get_args(Agree)

Vote = Literal["for", "against", "abstained"]
"""Meaning of a decision, whatever its name in the definition."""
VOTES: tuple[Vote, ...] = get_args(Vote)

Pick = Literal["all", "any", "in_turn"]
PICKS: tuple[Pick, ...] = get_args(Pick)

USER, ROLE, RULE, CHAIN = "user", "role", "rule", "chain"
"""Resolvers that the machine handles. Others belong to the engine or the application."""


HEAVIEST = 1_000_000
"""Maximum weight of one approver."""


class Ask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """An unresolved assignment of approvers."""

    by: str
    """Its resolver: `user`, `role`, `rule`, `manager`, `chain`, or one that the application registers."""
    of: str = ""
    """Argument of the resolver: a user id, the name of a role or chain, the text of a rule. For a manager, empty
    means the requester's."""
    rule: dict[str, object] | None = None
    """Stored form of a rule. It returns a user id, `role:<name>`, or a list of these."""
    weight: int = 1
    """Weight of each approver's decision."""
    pick: Pick = "any"
    """For several approvers: each is asked, they share one task, or one is asked in turn (round robin)."""
    via: str = ""
    """Reason for asking them if a rule named them. Empty otherwise."""

    @property
    def is_direct(self) -> bool:
        """Whether it names the approvers directly, without a lookup."""
        return self.by == USER or (self.by == ROLE and self.pick == "any")

    @property
    def words(self) -> str:
        """The assignment as text."""
        return f"{self.by}:{self.of}" if self.of else self.by


class Stage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A stage of an approval chain. It is asked after the previous stage has agreed."""

    name: str = ""
    asks: list[Ask]
    agree: Agree = "any"
    least: int = 0
    """Required number or weight, for `n` and `weight`."""


def agreement_of_list(agree: Agree | None, resolvers: Sequence[str]) -> Agree | None:
    """Return the agreement rule that a new definition stores for approvers with these resolvers.

    Without an explicit rule all members of a list must agree. Older graphs without a rule treat a list of roles as
    `any`, so the rule is stored for such lists. For other lists it is omitted, which keeps the hashes of their graphs.
    """
    is_of_roles = len(resolvers) > 1 and set(resolvers) == {ROLE}
    return "all" if agree is None and is_of_roles else agree


def agreement_in_words(agree: Agree, least: int) -> str:
    """Describe the required agreement to approvers."""
    return {
        "any": "any of them",
        "all": "all of them",
        "n": f"at least {least} of them",
        "weight": f"a weight of at least {least}",
    }[agree]
