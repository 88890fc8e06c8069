"""Waiting for time to go by, or for a signal.

Entered when: a token arrives. May do: set a timer, or wait for a signal; one that came early is taken at once. Left when: the time is over or the signal is
there (`ok`), or the signal did not come in time (`timeout`). On compensation: nothing to undo.
"""

from __future__ import annotations

from holdfast.machine.commands import TimeOut
from holdfast.machine.events import SignalTaken, StepCompleted
from holdfast.machine.graph import OK, Node, WaitEvent, WaitTimer
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn, step_timer


class WaitTimerKind:
    """Waits for time to go by."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Set the timer."""
        assert isinstance(node.op, WaitTimer)
        number = turn.begin(token, node)
        turn.set_timer(step_timer(number), node.op.duration_ms, TimeOut(step=number))

    def stop(self, turn: Turn, step: Step) -> None:
        """Nobody waits any more."""
        turn.cancel_timer(step_timer(step.number))


class WaitEventKind:
    """Waits for a signal."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Take a signal that came early, or wait."""
        assert isinstance(node.op, WaitEvent)
        early = turn.state.signals.get(node.op.signal)
        number = turn.begin(token, node)
        if early:
            payload = early[0]
            turn.emit(SignalTaken(name=node.op.signal))
            received(turn, turn.state.open[number], payload)

    def stop(self, turn: Turn, step: Step) -> None:
        """Nobody waits any more."""
        turn.cancel_timer(step_timer(step.number))


def received(turn: Turn, step: Step, payload: object) -> None:
    """The signal that a step waits for is there."""
    turn.cancel_timer(step_timer(step.number))
    turn.emit(StepCompleted(step=step.number, output=payload))
    turn.leave(step.token, step.node, OK)
