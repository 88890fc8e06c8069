"""A human step asks a person.

Entered when: a token arrives. May do: ask. Left when: somebody decided (`confirmed` or `rejected`), or nobody did in time (`timeout`). On compensation: a
confirmed decision is rolled past; its own undoing work is called, if it has any.
"""

from __future__ import annotations

from holdfast.machine.graph import Node
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn, step_timer


class HumanKind:
    """Asks a person."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Ask."""
        turn.begin(token, node)

    def stop(self, turn: Turn, step: Step) -> None:
        """Nobody is asked any more."""
        turn.cancel_timer(step_timer(step.number))
