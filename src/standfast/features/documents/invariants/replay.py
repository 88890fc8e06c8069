"""A history folded once more, event by event: what each of them must not have done, and the rows that all of them leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from standfast.errors import StandfastError
from standfast.features.documents.invariants.rules import InvariantBreach
from standfast.graph.index import GraphIndex
from standfast.graph.model import OK, GateOp, HumanOp, JoinOp, TaskOp
from standfast.graph.nodes.task import WEBHOOK
from standfast.kernel.history import StoredEvent
from standfast.kernel.program import Program
from standfast.kernel.rows import Record, merge
from standfast.machine.machine import GraphMachine
from standfast.machine.model import events as e
from standfast.machine.model.document_state import Data
from standfast.machine.model.queries.edit_windows import index_of, window_of
from standfast.machine.model.queries.fields import is_same
from standfast.machine.model.state import ROOT, RunState
from standfast.store.records.instances import CommittedRows

Visit = tuple[str, str, int, int | None]
"""A token, a node, the how manieth time, and the step that is repeated."""


class HistoryReplay:
    """The fold of a document's history. It ends at the first event that cannot have followed from those before it."""

    def __init__(self, program: Program, events: Sequence[StoredEvent]) -> None:
        assert isinstance(program.decider, GraphMachine)
        self._program, self._machine = program, program.decider
        self.state = RunState()
        self.found: list[InvariantBreach] = []
        self.is_whole = True
        """Whether all events could be folded."""
        self.commits: list[CommittedRows] = []
        """What the commits say about rows, in order."""
        self.visits: dict[Visit, int] = {}
        """The steps that there were, by where they were."""
        self._completed: set[int] = set()
        self._undoing: set[int] = set()
        """The steps that undo others."""
        self._by_hand: set[str] = set()
        """The commands by which an operator has completed a step, so that nothing came back."""
        self._versions: dict[int, Data] = {}
        """The content that approvals may have been about."""
        self._writers: dict[int, int] = {}
        """The steps that wrote versions. One that takes no time is told only after what it did."""
        self._approved: Data = {}
        """What gates have relied on since people could edit the document last, by field."""
        self._changed_behind: list[tuple[str, InvariantBreach]] = []
        """Changes of that, with their causes: only an amendment in place may have made them."""
        self._drift: tuple[str, str] | None = None
        """The cause of a change that only an amendment in place may have made, and what is wrong with it otherwise."""
        self._fold(events)

    @property
    def _routes(self) -> GraphIndex:
        """The graph that the document follows at this point."""
        return self._machine.routes_of(self.state)

    def _fold(self, events: Sequence[StoredEvent]) -> None:
        records: list[Record] = []
        for place, stored in enumerate(events):
            if not stored.is_system and not self._step(stored, records):
                self.is_whole = False
                return
            is_last = place + 1 == len(events) or events[place + 1].at != stored.at
            if is_last and records:
                self.commits.append(CommittedRows(stored.at, merge(records)))
                records = []
        known = {*self.visits.values(), *self._undoing}
        for version, step in self._writers.items():
            if step not in known:
                self.found.append(
                    InvariantBreach("WF-09", f"version {version} was written by step {step}, which there was not")
                )
        if self._drift is not None:
            self.found.append(InvariantBreach("WF-05", self._drift[1]))
        self.found += [found for _, found in self._changed_behind]

    def left_behind(self) -> str:
        """What is under way in another place than the document itself; empty if nothing is."""
        state = self.state
        root = state.token(ROOT)
        if root is None or state.is_terminal or not root.node:
            return ""
        region = self._routes.node(root.node).region
        left = sorted(name for name in self._beside() if not region or self._routes.node(name).region != region)
        return f"{', '.join(map(repr, left))} {'is' if len(left) == 1 else 'are'}" if left else ""

    def _beside(self) -> set[str]:
        """The nodes of the tokens and open steps of the document besides its first token's; what is being undone is none of them."""
        state = self.state
        found = {each.node for each in (*state.tokens.values(), *state.parked.values()) if each.id != ROOT}
        steps = (*state.open.values(), *state.dead.values(), *state.frozen.values())
        found |= {step.node for step in steps if step.of is None and step.token != ROOT}
        return found - {""}

    @property
    def records(self) -> list[Record]:
        """All that the history says about rows."""
        return merge([record for commit in self.commits for record in commit.records])

    def _step(self, stored: StoredEvent, records: list[Record]) -> bool:
        """Fold one event; whether that could be done."""
        try:
            event = cast("e.Event", self._program.decode(stored))
            before = len(self.found)
            self.found += self._looked_at(stored, event)
            if any(each.rule in _UNFOLDABLE for each in self.found[before:]):
                return False
            records += self._machine.rows_of(self.state, event)
            self.state = self._machine.evolve(self.state, event)
        except (StandfastError, LookupError, AssertionError, AttributeError, TypeError, ValueError) as error:
            told = f"event {stored.sequence}, {stored.type}, does not follow from those before it: {error!r}"
            self.found.append(InvariantBreach("WF-15", told))
            return False
        if self.state.document is not None and isinstance(event, e.DocumentCreated | e.DocumentChanged):
            self._versions[event.version] = self.state.document.data
        return True

    def _looked_at(self, stored: StoredEvent, event: e.Event) -> Iterator[InvariantBreach]:
        named = _named_in(event)
        if named not in {"", stored.actor}:
            told = f"event {stored.sequence}, {stored.type}, is by {named!r} and stored as that of {stored.actor!r}"
            yield InvariantBreach("K-01", told)
        match event:
            case e.StepStarted():
                yield from self._entered(event, event.node)
            case e.StepCompleted():
                yield from self._ended(stored, event)
            case e.StepRepaired():
                self._by_hand.add(stored.cause)
            case e.CompensationStarted():
                self._undoing.add(event.step)
            case e.DocumentChanged():
                yield from self._changed(stored, event)
            case e.DocumentMoved():
                yield from self._moved(stored, event)
            case e.ApprovalsApplied():
                yield from self._applied(event)
            case e.RoundCompleted():
                yield from self._arrived("the round was completed")
            case _:
                pass

    def _entered(self, event: e.StepStarted | e.StepCompleted, node: str) -> Iterator[InvariantBreach]:
        visit = (event.token, node, event.visit, event.retry_of)
        other = self.visits.setdefault(visit, event.step)
        if other != event.step:
            rule = "WF-16" if isinstance(self._routes.node(node).op, JoinOp) else "WF-02"
            told = (
                f"steps {other} and {event.step} are both visit {event.visit} of {node!r} by the token {event.token!r}"
            )
            yield InvariantBreach(rule, told)

    def _ended(self, stored: StoredEvent, event: e.StepCompleted) -> Iterator[InvariantBreach]:
        if event.node:
            yield from self._entered(event, event.node)
        if event.step in self._completed:
            yield InvariantBreach("WF-02", f"step {event.step} is completed twice")
        self._completed.add(event.step)
        step = self.state.open.get(event.step)
        node = event.node or ("" if step is None else step.node)
        if node and stored.cause not in self._by_hand and self._is_answered_request(node, event.outcome):
            missing = _missing_evidence(event.output)
            if missing:
                told = f"the request of step {event.step} at {node!r} was answered, and {', '.join(missing)} of its evidence is gone"
                yield InvariantBreach("E1", told)

    def _is_answered_request(self, node: str, outcome: str) -> bool:
        """Whether a step has kept what came back of a request; without `into` its author wants nothing kept."""
        op = self._routes.node(node).op
        return isinstance(op, TaskOp) and op.work.handler == WEBHOOK and outcome == OK and self._routes.kept(node) != {}

    def _changed(self, stored: StoredEvent, event: e.DocumentChanged) -> Iterator[InvariantBreach]:
        assert self.state.document is not None
        if event.step:
            self._writers[event.version] = event.step
        if event.version != self.state.document.version + 1:
            yield InvariantBreach("K-01", f"version {event.version} follows {self.state.document.version}")
        hit = sorted(name for name, value in event.changes.items() if self._is_other(name, value))
        if hit:
            told = (
                f"version {event.version} has changed {', '.join(hit)}, which a gate had relied on as it was approved"
            )
            self._changed_behind.append((stored.cause, InvariantBreach("G2", told)))
        view = window_of(self._routes, self.state)
        action = index_of(self._routes).actions.get(event.action)
        may_be_own = bool(event.step) and action is not None and action.workflow_allowed
        if view.window == "editable" or may_be_own:
            return
        where = ", ".join(view.places) or self.state.document.status
        self._drift = (
            stored.cause,
            f"version {event.version} was written by {event.action!r} of {event.by!r} at {where}, which is {view.window}",
        )

    def _is_other(self, name: str, value: object) -> bool:
        return name in self._approved and not is_same(self._approved[name], value)

    def _arrived(self, what: str) -> Iterator[InvariantBreach]:
        """Nothing else of the document is under way when it passes a gate, or rests."""
        others = self._beside()
        if others:
            named = ", ".join(map(repr, sorted(others)))
            yield InvariantBreach("G1", f"{what} while {named} {'was' if len(others) == 1 else 'were'} under way")

    def _moved(self, stored: StoredEvent, event: e.DocumentMoved) -> Iterator[InvariantBreach]:
        assert self.state.document is not None
        if event.how == "passed" and event.transition:
            yield from self._arrived(f"{event.transition!r} has let it pass")
        if event.how == "rejected":
            yield from self._sent_back(event)
        if event.how == "amended":
            self._changed_behind = [each for each in self._changed_behind if each[0] != stored.cause]
        if index_of(self._routes).spec.states.get(event.status) == "editable":
            self._approved = {}
        if event.how == "amended" and self._drift is not None and self._drift[0] == stored.cause:
            self._drift = None
        transition = index_of(self._routes).transitions.get(event.transition)
        status = self.state.document.status
        if event.how == "passed" and (
            transition is None or transition.target != event.status or status not in transition.sources
        ):
            yield InvariantBreach("N1", f"{event.transition!r} has moved it from {status!r} to {event.status!r}")
        for number, each in self.state.document.approvals.items():
            slot = self._routes.node(each.node).region
            if event.how == "passed" and each.verdict == "void" and self._leads_to(slot, event.transition):
                yield InvariantBreach(
                    "WF-03", f"{event.transition!r} has let it pass although the approval of step {number} is void"
                )

        if event.how == "passed":
            yield from self._refused(event.transition)

    def _refused(self, transition: str) -> Iterator[InvariantBreach]:
        """No gate lets a document pass that was refused in its slot, unless an approval behind that has answered."""
        assert self.state.document is not None
        for number, each in self.state.document.refusals.items():
            if self._leads_to(self._routes.node(each.node).region, transition):
                told = f"{transition!r} has let it pass with a standing refusal: step {number} at {each.node!r} was {each.outcome}"
                yield InvariantBreach("G3", told)

    def _sent_back(self, event: e.DocumentMoved) -> Iterator[InvariantBreach]:
        """A rejection comes back from the gate of the slot that the document is in, and from no other."""
        document = self.state.document
        assert document is not None
        region = None if document.refused is None else index_of(self._routes).regions.get(document.refused.slot)
        op = None if region is None else self._routes.node(region.exit).op
        transition = index_of(self._routes).transitions.get(op.transition) if isinstance(op, GateOp) else None
        if transition is None or document.status not in transition.sources:
            yield InvariantBreach("G1", f"a rejection has led it from {document.status!r} back to {event.status!r}")

    def _leads_to(self, slot: str, transition: str) -> bool:
        region = index_of(self._routes).regions.get(slot)
        op = None if region is None else self._routes.node(region.exit).op
        return isinstance(op, GateOp) and op.transition == transition

    def _applied(self, event: e.ApprovalsApplied) -> Iterator[InvariantBreach]:
        document = self.state.document
        assert document is not None
        used_by = event.transition or event.slot
        for number in event.steps:
            approval = document.approvals.get(number)
            if approval is None or approval.verdict != "approved":
                yield InvariantBreach(
                    "WF-03", f"{used_by!r} used up the approval of step {number}, which does not stand"
                )
                continue
            op = self._routes.node(approval.node).op
            covers = set(op.covers) if isinstance(op, HumanOp) else set()
            index = index_of(self._routes)
            names = covers or {*self._versions.get(approval.version, {}), *document.data} - index.free
            seen = self._versions.get(approval.version, {})
            if not (event.slot and index.spec.states[document.status] == "editable"):
                self._approved |= {name: document.data.get(name) for name in index.covered(covers)}
            changed = sorted(name for name in names if seen.get(name) != document.data.get(name))
            if changed:
                told = f"step {number} approved version {approval.version}, and {', '.join(changed)} changed before the gate"
                yield InvariantBreach("WF-03", told)


def _missing_evidence(output: object) -> list[str]:
    """The parts that are missing of what is kept of a request and its answer, under a name of its author's or by itself."""
    told = output if isinstance(output, dict) else {}
    if "request" not in told:
        named = (each for each in told.values() if isinstance(each, dict) and "request" in each)
        told = next(named, told)
    request = told.get("request")
    asked = request if isinstance(request, dict) else {}
    missing = [f"request.{name}" for name in ("url", "bytes", "sha256") if name not in asked]
    return [*missing, *(name for name in ("status", "bytes", "sha256") if name not in told)]


def _named_in(event: e.Event) -> str:
    """Who brought an event about, as it says itself; empty if it was a step, or says nothing."""
    match event:
        case e.DocumentCreated() | e.TransitionRequested():
            return event.by
        case e.DocumentChanged():
            return "" if event.step else event.by
        case e.TaskDecided() | e.StepAnswered():
            return event.actor
        case _:
            return ""


_UNFOLDABLE = frozenset({"WF-02", "WF-16"})
"""What is found about an event that must not be folded a second time."""
