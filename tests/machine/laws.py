"""What must hold of every run, whatever the graph, told without the reference: nothing stands still, nothing is undone too early or in vain."""

from __future__ import annotations

from collections.abc import Iterator

from machine.comparing import View
from machine.hosting import Call, Host
from standfast.graph import model as g
from standfast.kernel.row_kinds.steps import StepOpened, TaskOpened
from standfast.machine.model import events as e


class Laws:
    """Watches over one run."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._begun: set[int] = set()
        """Steps whose handler may have done something."""
        self._is_impatient = False
        self._undoing: set[int] = set()
        """Compensations that have been called."""

    def begin(self, step: int) -> None:
        """The handler of a step may do something from now on."""
        self._begun.add(step)

    def lose_patience(self) -> None:
        """Handlers that were told to stop have had their time; nobody knows what they did."""
        self._is_impatient = True

    def broken(self, view: View) -> Iterator[str]:
        """What does not hold now."""
        if _stands_still(self._host, view):
            yield "the run stands still"
        calls = self._host.calls.values()
        undoing = [call.body.step for call in calls if call.body.is_compensation]
        forward = [call.body.step for call in calls if not call.body.is_compensation and call.is_begun]
        if undoing and not self._is_impatient:
            is_new = not self._undoing.issuperset(undoing)
            concerned = [step for step in forward if self._is_rolled_back or (is_new and self._is_dropped(step))]
            self._undoing.update(undoing)
            if concerned:
                yield f"compensation {undoing} is called while {concerned} still run"
        if len(undoing) > 1:
            yield f"compensations {undoing} are called at the same time"
        for call in calls:
            if call.body.attempt > self._allowed(call):
                yield f"step {call.body.step} is called {call.body.attempt} times"

    def broken_at_the_end(self) -> Iterator[str]:
        """What did not hold all along."""
        rows = {row.number: row for row in self._host.rows if isinstance(row, StepOpened)}
        dead = {event.step for event in self._host.history if isinstance(event, e.StepPaused)}
        for row in rows.values():
            if row.compensates is None:
                continue
            of = rows[row.compensates]
            is_task = isinstance(self._host.graph.nodes[of.node].op, g.TaskOp)
            if is_task and of.number not in self._begun | dead and not self._is_impatient:
                yield f"step {of.number} is undone, and its handler was never called"
            if self._is_protected(of, rows):
                yield f"step {of.number} is undone, and a boundary behind it protects it"

    @property
    def _is_rolled_back(self) -> bool:
        """Whether the run as a whole is undone, and not only branches that were not needed."""
        return self._host.state.rollback is not None and self._host.state.rollback.chain is not None

    def _is_dropped(self, step: int) -> bool:
        row = next(row for row in self._host.rows if isinstance(row, StepOpened) and row.number == step)
        events = [event for event in self._host.history if isinstance(event, e.BranchesDropped)]
        return any(f"{row.token}/".startswith(f"{token}/") for event in events for token in event.tokens)

    def _allowed(self, call: Call) -> int:
        node = self._host.graph.nodes[call.body.node]
        work = (
            node.compensation if call.body.is_compensation else node.op.work if isinstance(node.op, g.TaskOp) else None
        )
        assert work is not None
        return work.retry.max_calls

    def _is_protected(self, of: StepOpened, rows: dict[int, StepOpened]) -> bool:
        """Whether the same token has passed a boundary after the step had ended."""
        ends = [event.step for event in self._host.history if isinstance(event, e.StepCompleted | e.StepFailed)]
        if of.number not in ends:
            return False
        is_failure = any(isinstance(event, e.RollbackStarted) for event in self._host.history)
        kinds = (g.NoReturnOp, g.SavePointOp) if is_failure and not self._is_dropped(of.number) else (g.NoReturnOp,)
        later = [rows[number] for number in ends[ends.index(of.number) + 1 :]]
        return any(row.token == of.token and isinstance(self._host.graph.nodes[row.node].op, kinds) for row in later)


def _stands_still(host: Host, view: View) -> bool:
    """Whether nothing can ever happen to the run, though it has not ended."""
    if host.state.status in {"new", "paused"} or host.state.is_terminal:
        return False
    waits = ("calls", "recalled", "waits", "timers", "letters")
    has_child = any(not child.has_ended for child in host.children)
    if has_child or any(notice.waits for notice in host.notices):
        return False
    # A deadline alone is nothing to wait for.
    is_asking = any(step.number in host.state.open for step in host.rows if isinstance(step, TaskOpened))
    return not is_asking and not any(view[name] for name in waits if _names(view[name]) != {"deadline"})


def _names(found: object) -> set[object]:
    assert isinstance(found, dict | set)
    return set(found)
