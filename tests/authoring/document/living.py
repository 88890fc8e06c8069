"""Random lives of documents in compiled bodies, and a ledger that follows their events: whether every gate was a wall.

The ledger knows nothing of the machine: it counts tokens and steps by events, and takes states, windows and covered fields from the files
as they were written.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from authoring.document.examples import Plain
from machine.hosting import OLGA, Host
from standfast.graph.model import Graph
from standfast.kernel.actor import SYSTEM, Actor
from standfast.kernel.decision import Answer, Decision, Rejection
from standfast.machine.model import events as e
from standfast.machine.model.commands import repair_commands as r
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.document_commands import CreateDocument, Mutate, RequestTransition
from standfast.machine.model.engine_tasks import FindPeople
from standfast.machine.model.messages import PublishedMessage

ACTS = 40
AUTHOR = Actor(id="ann", capabilities=frozenset({"*"}))
BOSSES = tuple(Actor(id=f"boss{number}", roles=frozenset({"boss"})) for number in range(3))
GIVEN: Plain = {"number": "A-1", "total": 7, "kind": "goods", "tags": ["x", "y"]}
SYSTEM_FIELDS = frozenset({"posting"})
OWN_CHANGES: tuple[Plain | None, ...] = (None, {"posting": "GL"}, {"total": 9}, {"number": "B-2"}, {"owner": "eve"})
"""What handlers of actions answer, well meant or not."""


class Life:
    """One document from its creation on, with a world around it that does anything at any time."""

    def __init__(self, graph: Graph, contract: Plain, slots: Plain, dice: Random) -> None:
        self.host = Host(graph)
        self.host.key = "B-1"
        self.ledger = Ledger(contract, slots)
        self._dice = dice
        life: Any = contract["lifecycle"]
        self._transitions = life["transitions"]
        self.host.org = {"flag": dice.random() < 0.5}
        tags = dice.choice((["x", "y"], ["x"], [], ["x", "y", "z"]))
        self.tell(CreateDocument(data={**GIVEN, "tags": tags}), AUTHOR)

    def tell(
        self, command: c.Command, actor: Actor = OLGA, *, effect: int | None = None, timer: str | None = None
    ) -> Answer:
        """Decide a command; the ledger goes through what happened."""
        answer = self.host.tell(command, actor, effect=effect, timer=timer)
        if isinstance(answer, Decision):
            self.ledger.follow(answer.events)  # type: ignore[arg-type]
        return answer

    def run(self) -> None:
        """Live for a while."""
        for _ in range(ACTS):
            if self.host.state.is_terminal:
                return
            self._tidy()
            self._dice.choice(list(self._acts()))()

    def _acts(self) -> Iterator[Callable[[], None]]:
        """What can happen next; some of it more likely."""
        state, dice = self.host.state, self._dice
        assert state.document is not None
        waits = any(step.node.startswith(("sys:state:", "sys:end")) for step in state.open.values())
        yield from [self._ask] * (6 if waits else 1)
        yield from [self._edit] * (1 if dice.random() < 0.4 else 0)
        yield from [self._decide] * (6 if state.document.approvals else 0)
        yield from [self._call] * (4 if self.host.calls else 0)
        yield from [self._wake] * (2 if self.host.timers else 0)
        yield from [self._bring] * (2 if any(step.effect is None for step in state.open.values()) else 0)
        yield from [self._operate] * (8 if state.status == "paused" else 1 if dice.random() < 0.2 else 0)

    # -- what may happen next

    def _ask(self) -> None:
        document = self.host.state.document
        assert document is not None
        legal = [each["name"] for each in self._transitions if document.status in each["from"]]
        wanted = self._dice.choice(legal or ["drop"])
        if wanted != "drop" or self._dice.random() < 0.03:
            self.tell(RequestTransition(transition=wanted), AUTHOR)

    def _edit(self) -> None:
        edits: tuple[Plain, ...] = ({"total": self._dice.randint(1, 9)}, {"number": "C-3"}, {"tags": ["x"]})
        changes = self._dice.choice(edits)
        self.tell(Mutate(payload=changes, amends=self._dice.random() < 0.3), AUTHOR)

    def _decide(self) -> None:
        state = self.host.state
        assert state.document is not None
        asked = [step for step in state.open.values() if step.number in state.document.approvals]
        if asked:
            step = self._dice.choice(asked)
            version = str(state.document.approvals[step.number].version)
            outcome = "approved" if self._dice.random() < 0.85 else "rejected"
            told = c.AnswerStep(step=step.number, outcome=outcome, document_version=version, comment="because")
            self.tell(told, self._dice.choice(BOSSES))

    def _call(self) -> None:
        """A handler comes back, well or badly, or with changes that do not fit."""
        calls = list(self.host.calls.items())
        if not calls:
            return
        effect, call = self._dice.choice(calls)
        call.is_begun, number = True, call.body.step
        if self._dice.random() < 0.2:
            self.tell(c.FailStep(step=number, error="no", is_final=True), SYSTEM, effect=effect)
            return
        output: object = self._dice.choice(OWN_CHANGES)
        if call.effect.handler == "$documents":
            output = {"type": "order", "id": "O-1"}
        if isinstance(self.tell(c.CompleteStep(step=number, output=output), SYSTEM, effect=effect), Rejection):
            self.tell(c.FailStep(step=number, error="refused", is_final=True), SYSTEM)

    def _wake(self) -> None:
        if self.host.timers:
            key, command = self._dice.choice(list(self.host.timers.items()))
            self.host.now = max(self.host.now, self.host.due[key])
            self.tell(command, SYSTEM, timer=key)

    def _bring(self) -> None:
        """An event comes, or a workflow ends that was called."""
        waiting = [each for each in self.host.state.open.values() if each.effect is None]
        for child in self.host.children:
            if not child.has_ended:
                child.has_ended = True
                status = "cancelled" if child.asked else self._dice.choice(("completed", "completed", "failed"))
                self.tell(c.EndChild(step=child.step, status=status), SYSTEM)
                return
        if waiting:
            event = PublishedMessage(id=str(self._dice.random()), event="e", payload=1)
            self.tell(c.TakeEvents(step=self._dice.choice(waiting).number, events=[event]), SYSTEM)

    def _operate(self) -> None:
        state = self.host.state
        if state.dead and self._dice.random() < 0.6:
            step = self._dice.choice(list(state.dead))
            again = r.RetryStep(step=step, reason="again")
            self.tell(self._dice.choice((again, again, r.SkipStep(step=step, outcome="error", reason="on"))))
        elif state.dropped is not None and state.dropped.stuck is not None and self._dice.random() < 0.5:
            self.tell(c.RetryCompensation(step=state.dropped.stuck))
        elif self._dice.random() < 0.3 and len(state.tokens) > 1:
            self.tell(r.CancelBranch(token=self._dice.choice(list(state.tokens)), reason="enough"))
        elif state.status == "paused":
            self.tell(c.ResumeWorkflow(reason="done"))
        else:
            self.tell(c.PauseWorkflow(reason="audit"))

    def _tidy(self) -> None:
        """What the engine does at once: commands that were taken back arrive, people are found, notices go out."""
        host = self.host
        while host.inbox or host.errands or host.notices:
            if host.inbox:
                self.tell(host.inbox.pop(0), SYSTEM)
            elif host.notices:
                notice = host.notices[0]
                ended = c.EndNotice(step=notice.step, key=notice.key, channel=notice.channel, to=notice.to)
                self.tell(ended, SYSTEM)
                host.notices = [each for each in host.notices if each.key != notice.key]
            else:
                errand = host.errands.pop(0)
                if isinstance(errand, FindPeople):
                    self.tell(c.PeopleFound(step=errand.step, error="nobody looks"), SYSTEM)


class Ledger:
    """What must be true of every history, told by its events."""

    def __init__(self, contract: Plain, slots: Plain) -> None:
        life: Any = contract["lifecycle"]
        self._windows = {name: each["window"] for name, each in life["states"].items()}
        self._sources = {each["name"]: set(each["from"]) for each in life["transitions"]}
        self._targets = {each["name"]: each["to"] for each in life["transitions"]}
        declared: Any = contract["slots"]
        self._exits = {each["id"]: str(each["exit"]) for each in declared}
        self._covers = dict(_covered(slots))
        self._given = set(contract["fields"]) - SYSTEM_FIELDS  # type: ignore[call-overload]
        self._tokens: set[str] = set()
        self._open: dict[int, tuple[str, str]] = {}
        """Node and token of the steps that have not ended."""
        self._at: dict[int, str] = {}
        """The token of each step."""
        self._splits: dict[int, tuple[str, str]] = {}
        """Node and token of the steps that ended as they were entered, splits among them."""
        self._scopes: dict[int, list[str]] = {}
        """The branches of each split that have arrived."""
        self._begun: Counter[int] = Counter()
        self._data: Plain = {}
        self._version = 0
        self._versions: dict[int, Plain] = {}
        self._asked: dict[int, tuple[str, int]] = {}
        self._approved: set[int] = set()
        """The steps that were answered by an approval."""
        self._kept: set[str] = set()
        self._void: dict[int, str] = {}
        """The approvals that an edit has voided since their slot was entered, by step."""
        self._sealed: Plain = {}
        self._status = ""
        self._refused = ""
        self._answered: set[int] = set()
        self._stands: defaultdict[str, set[int]] = defaultdict(set)
        """The refusals that each token carries: a branch takes over those of the token that was split."""
        self._inherited: dict[str, set[int]] = {}
        """Those that a branch began with."""
        self._apart: defaultdict[int, set[int]] = defaultdict(set)
        """Those of branches that ended without counting, by the split. One that ends after the others have met leaves them to the branch it lay in."""
        self.met: Counter[str] = Counter()
        """What there was, so that nobody believes a campaign that met nothing."""

    def follow(self, events: tuple[e.Event, ...]) -> None:
        """Go through what one command has brought about."""
        is_amended = any(isinstance(each, e.DocumentMoved) and each.how == "amended" for each in events)
        for event in events:
            self.met[type(event).__name__] += 1
            self._carry(event)
            self._tell(event)
            match event:
                case e.DocumentCreated():
                    self._status, self._data, self._version = event.status, dict(event.data), event.version
                    self._versions[event.version] = self._data
                case e.DocumentChanged():
                    self._changed(event, is_amended=is_amended)
                case e.StepAnswered() | e.ApprovalsApplied() | e.ApprovalsKept() | e.ApprovalsVoided():
                    self._approval(event)
                case e.SlotRejected():
                    self._refused = event.slot
                case e.DocumentMoved():
                    self._moved(event)
                case e.RoundCompleted():
                    self._is_alone("the round is over")
                case _:
                    pass

    # -- tokens and steps

    def _tell(self, event: e.Event) -> None:
        """Count steps and tokens."""
        match event:
            case e.StepStarted():
                self._open[event.step], self._at[event.step] = (event.node, event.token), event.token
                self._asked[event.step] = (event.node, self._version)
            case e.StepCompleted() | e.StepSkipped():
                self._open.pop(event.step, None)
                self._at.setdefault(event.step, event.token)
                self._splits[event.step] = event.node, event.token
                self._entered(event.node)
            case e.StepFailed() | e.StepRequeued():
                self._open.pop(event.step, None)
            case e.StepRepaired() if event.repair in {"skip", "complete"}:
                self._open.pop(event.step, None)
            case e.WorkflowStarted():
                self._tokens.add("0")
            case e.TokenEnded():
                self._tokens.discard(event.token)
            case _:
                self._branch(event)

    def _carry(self, event: e.Event) -> None:
        """Tokens carry refusals along until somebody approves behind them."""
        match event:
            case e.StepAnswered():
                token = self._at[event.step]
                self._answered.add(event.step)
                self._stands[token] = set() if event.outcome == "approved" else self._stands[token] | {event.step}
            case e.StepCompleted() | e.StepSkipped():
                self._left(event.step)
            case e.StepFailed() if not event.reason:
                self._left(event.step)
            case e.TokenEnded():
                self._dropped(event)
            case e.BranchesMet():
                self._meet(event.step)
            case _:
                pass

    def _left(self, step: int) -> None:
        """A question was left that nobody has answered."""
        node, token = self._open.get(step, ("", ""))
        if node in self._covers and step not in self._answered:
            self._stands[token].add(step)

    def _dropped(self, event: e.TokenEnded) -> None:
        own = self._stands.pop(event.token, set()) - self._inherited.pop(event.token, set())
        split = event.token.rpartition("/")[2].partition(".")[0]
        if event.reason == "finished" and split and int(split) in self._scopes:
            self._apart[int(split)] |= own
        elif event.reason == "finished" and split != "0":
            above = event.token.rpartition("/")[0]
            while above not in self._tokens:
                above = above.rpartition("/")[0]
            for (
                each
            ) in self._tokens:  # Whoever decides behind it from now on does so, whatever branch of it they are in.
                if each != event.token and f"{each}/".startswith(f"{above}/"):
                    self._stands[each] |= own
                    self._inherited.setdefault(each, set()).update(own if each != above else ())

    def _meet(self, step: int) -> None:
        """What each branch that counts still carries from before goes on, and all that it carries of its own."""
        parent, arrived = self._at[step], self._scopes[step]
        found = set(self._stands[parent])
        for each in arrived:
            found &= self._stands[each] | (found - self._inherited[each])
        for each in arrived:
            found |= self._stands.pop(each, set()) - self._inherited.pop(each, set())
        self._stands[parent] = found | (set() if arrived else self._apart[step])

    def _entered(self, node: str) -> None:
        """A slot is gone through anew: what was void there is asked again, and what was refused there is forgotten."""
        if node.startswith("sys:slot:") and node.endswith(":in"):
            self._stands.clear()
            slot = node.removeprefix("sys:").removesuffix(":in")
            self._void = {step: each for step, each in self._void.items() if not each.startswith(f"usr:{slot}:")}

    def _split_again(self, step: int) -> None:
        """A split is gone through anew, as a list is that has changed: whoever is asked in its branches is asked about what it is now."""
        token = self._at[step]
        same = tuple(f"{token}/{other}." for other, place in self._splits.items() if place == self._splits[step])
        self._void = {each: node for each, node in self._void.items() if not self._at[each].startswith(same)}

    def _approval(self, event: e.StepAnswered | e.ApprovalsApplied | e.ApprovalsKept | e.ApprovalsVoided) -> None:
        match event:
            case e.StepAnswered():
                self._approved |= {event.step} if event.outcome == "approved" else set()
            case e.ApprovalsApplied():
                self._applied(event)
            case e.ApprovalsKept():
                self._kept |= {self._asked[step][0] for step in event.steps}
            case e.ApprovalsVoided():
                void = {step: self._asked[step][0] for step in self._approved.intersection(event.steps)}
                self._void |= {
                    step: node for step, node in void.items() if event.why == "edited" and node not in self._kept
                }

    def _branch(self, event: e.Event) -> None:
        match event:
            case e.BranchesOpened():
                self._scopes[event.step] = []
                self._split_again(event.step)
                for place in event.taken or range(1, event.branches + 1):
                    self._begin(event.step, place)
            case e.ItemsBegun():
                for _ in range(event.count):
                    self._begin(event.step, self._begun[event.step] + 1)
            case e.JoinArrived():
                self._scopes[int(event.token.rpartition("/")[2].partition(".")[0])].append(event.token)
            case e.BranchesMet():
                self._tokens -= set(self._scopes.pop(event.step))
            case e.BranchesClosed():
                self._scopes.pop(event.step, None)
            case _:
                pass

    def _begin(self, step: int, place: int) -> None:
        self._begun[step] = place
        name = f"{self._at[step]}/{step}.{place}"
        self._tokens.add(name)
        self._inherited[name] = set(self._stands[self._at[step]])
        self._stands[name] = set(self._inherited[name])

    def _is_alone(self, when: str) -> None:
        """Nothing else is under way: neither a branch nor a question."""
        assert self._tokens <= {"0"}, f"{when}, and there are {sorted(self._tokens)}"
        left = [node for node, token in self._open.values() if token != "0" or node in self._covers]
        assert not left, f"{when}, and {left} are open"

    def _exit(self, node: str) -> str:
        return self._exits[":".join(node.split(":")[1:3])]

    # -- the document

    def _changed(self, event: e.DocumentChanged, *, is_amended: bool) -> None:
        self._data = {name: value for name, value in {**self._data, **event.changes}.items() if value is not None}
        self._version, self._versions[event.version] = event.version, self._data
        changed = [name for name, value in self._sealed.items() if self._data.get(name) != value]
        assert not changed or is_amended, f"{changed} were approved, and a gate has relied on it"

    def _applied(self, event: e.ApprovalsApplied) -> None:
        for step in event.steps:
            node, version = self._asked[step]
            covered = self._covers[node] or self._given
            before = self._versions[version]
            assert all(before.get(name) == self._data.get(name) for name in covered), f"{node} approved something else"
            self._sealed |= {name: self._data.get(name) for name in covered}

    def _moved(self, event: e.DocumentMoved) -> None:
        if event.how == "passed" and event.transition:
            self._is_alone(f"{event.transition} lets it pass")
            assert self._status in self._sources[event.transition]
            assert event.status == self._targets[event.transition]
            void = [each for each in self._void.values() if self._exit(each) == f"sys:gate:{event.transition}"]
            assert not void, f"{event.transition} lets it pass, and {void} are void"
            stands = {self._asked[step][0] for step in self._stands["0"]}
            refused = [each for each in stands if self._exit(each) == f"sys:gate:{event.transition}"]
            assert not refused, f"{event.transition} lets it pass, and {refused} were refused"
            self._void, self._kept = {}, set()
            self.met["passed"] += 1
        if event.how == "rejected":
            gate = self._exits[self._refused].removeprefix("sys:gate:")
            assert self._status in self._sources[gate], f"{self._status} was rejected by {gate}"
            self._is_alone("it is rejected")
        self._stands.clear()
        self._status = event.status
        if self._windows[event.status] == "editable":
            self._sealed = {}


def _covered(slots: Plain) -> Iterator[tuple[str, set[str]]]:
    """The approvals of a body, by their full ids, and the fields that they say to be about; a list that one lies in counts, too."""
    for slot, patch in slots.items():
        for node in patch.get("nodes", ()):  # type: ignore[attr-defined]
            if node["type"] == "approval":
                name = node["id"] if ":" in node["id"] else f"usr:{slot}:{node['id']}"
                yield name, set(node.get("covers", ()))
