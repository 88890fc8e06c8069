"""Plays a random schedule against the machine and the reference at once, and compares them after every command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TypeAlias

import msgspec

from machine.comparing import History, differences, seen_of_machine, seen_of_reference
from machine.generating import EVENTS, SIGNALS, random_input, random_output
from machine.hosting import ACTORS, OLGA, REX, ROOT, Call, Host
from machine.laws import Laws
from machine.polling import may_all
from machine.reference import STUCK, TASK_COMMANDS, Reference, Step
from standfast.graph import model as g
from standfast.graph.values.approver_rules import Ask, Stage
from standfast.kernel.actor import Actor
from standfast.kernel.codec.message_types import DEFAULT_LIMIT
from standfast.kernel.decision import Decision, Rejection
from standfast.machine.model.commands import repair_commands as r
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.engine_tasks import Notify, Person
from standfast.machine.model.messages import PublishedMessage

OF_THE_LAW = frozenset({"not_allowed", "unknown_outcome", "no_transition"})
"""Codes of refusals because of who asks, or for what."""
JUDGED = (c.PauseWorkflow, c.ResumeWorkflow, c.AnswerStep, *TASK_COMMANDS)
"""Commands whose refusals are compared by all of their codes."""
LONGEST = 60
"""Acts of a run before it is driven to its end."""


@dataclass(frozen=True)
class Begin:
    """A worker begins the call of a step."""

    step: int


@dataclass(frozen=True)
class Answer:
    """The call of a step comes back."""

    command: c.CompleteStep | c.FailStep


@dataclass(frozen=True)
class Fire:
    """A timer fires."""

    command: c.Command


@dataclass(frozen=True)
class Deliver:
    """The oldest message of the inbox arrives."""


@dataclass(frozen=True)
class Say:
    """A command from outside, welcome or not."""

    command: c.Command
    actor: Actor = OLGA


@dataclass(frozen=True)
class Pass:
    """Time goes by."""

    milliseconds: int


Act: TypeAlias = Begin | Answer | Fire | Deliver | Say | Pass


class DisagreementError(AssertionError):
    """Something is not as it must be."""


@dataclass
class Play:
    """One run on the machine and on the reference."""

    graph: g.Graph
    limit: int = DEFAULT_LIMIT
    host: Host = field(init=False)
    run: Reference = field(init=False)
    acts: list[Act] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.host = Host(self.graph, self.limit)
        self.run = Reference(self.graph, self.limit)
        self._history = History(self.host)
        self._laws = Laws(self.host)

    def act(self, act: Act) -> None:
        """Do one thing; raises DisagreementError if afterwards anything is not as it must be."""
        self.acts.append(act)
        match act:
            case Begin(step=step):
                self._begin(step)
            case Answer(command=command):
                self._answer(command)
            case Fire(command=command):
                self._fire(command)
            case Deliver():
                if self.host.inbox:
                    self._tell(self.host.inbox.pop(0))
            case Say(command=command, actor=actor):
                self._say(command, actor)
            case Pass(milliseconds=time):
                self.host.now += timedelta(milliseconds=time)

    def _begin(self, step: int) -> None:
        for call in self.host.calls.values():
            if call.body.step == step:
                call.is_begun = True
                self._laws.begin(step)

    def _answer(self, command: c.CompleteStep | c.FailStep) -> None:
        effect = next((number for number, call in self.host.calls.items() if call.body.step == command.step), None)
        if effect is None:
            return
        if self.run.is_over and self.host.calls[effect].effect.transactional:
            command = c.FailStep(step=command.step, error="its answer was refused, and what it wrote is undone")
        if not isinstance(command, c.FailStep) or command.was_called:
            self._laws.begin(command.step)
        self._tell(command, effect=effect)

    def _fire(self, command: c.Command) -> None:
        key = next((key for key, timer in self.host.timers.items() if timer == command), None)
        if key is None:
            return
        if isinstance(command, c.EndGrace):
            self._laws.lose_patience()
        self.host.now = max(self.host.now, self.host.due[key])
        self._tell(command, timer=key)

    def _say(self, command: c.Command, actor: Actor) -> None:
        if isinstance(command, c.EndNotice) and command.key not in [each.key for each in self.host.notices]:
            return
        if isinstance(command, c.EndChild):
            for child in self.host.children:
                if child.step == command.step:
                    is_done = command.status == "completed"
                    child.has_ended, child.is_stuck = not (is_done and child.asked == "undo"), command.reason == STUCK
                    child.has_completed = child.has_completed or is_done
        self._tell(command, actor)

    def _tell(
        self, command: c.Command, actor: Actor = OLGA, *, effect: int | None = None, timer: str | None = None
    ) -> None:
        before = msgspec.to_builtins(self.host.state)
        try:
            answer = self.host.tell(command, actor, effect=effect, timer=timer)
        except Exception as error:
            raise DisagreementError(f"the machine broke: {error!r}") from error
        found = []
        if not isinstance(answer, Decision) and msgspec.to_builtins(self.host.state) != before:
            found.append("a command that was not taken changed the state")
        if isinstance(answer, Rejection) and (effect is not None or timer is not None):
            found.append(f"an answer or a timer was refused: {answer}")
        taken = self.run.tell(command, actor, self.host.now)
        code = answer.code if isinstance(answer, Rejection) else ""
        if code != self.run.barred and (isinstance(command, JUDGED) or {code, self.run.barred} & OF_THE_LAW):
            found.append(f"the refusal should be {self.run.barred or 'none'!r}, got {answer}")
        if taken != isinstance(answer, Decision):
            found.append(f"the command should be {'taken' if taken else 'refused or ignored'}, got {answer}")
        view = seen_of_machine(self.host)
        found += differences(seen_of_reference(self.run), view)
        if isinstance(answer, Decision):
            found += self._history.problems()
        found += self._laws.broken(view)
        if self.run.is_over:
            found += self._laws.broken_at_the_end()
        if found:
            raise DisagreementError("\n".join(found))


@dataclass(frozen=True)
class Mood:
    """How a schedule tends to go."""

    failing: float
    """Share of calls that come back badly."""
    stopping: float
    """How often somebody cancels or aborts."""
    meddling: float
    """How often a command comes that makes no sense."""
    pausing: float
    """How often somebody has the run wait."""


def play_at_random(play: Play, rng: Random) -> None:
    """A whole run, from its start to its end."""
    mood = Mood(
        failing=rng.choice((0.03, 0.15, 0.4)),
        stopping=rng.choice((0.0, 0.0, 0.02, 0.08)),
        meddling=rng.choice((0.0, 0.05, 0.2)),
        pausing=rng.choice((0.0, 0.05, 0.15, 0.15)),
    )
    start = c.StartWorkflow(
        input=random_input(rng),
        delay_ms=rng.choice((0, 0, 0, 5)),
        parent=rng.choice(("", "00000000-0000-7000-8000-000000000007")),
        parent_definition="p",
        parent_step=1,
    )
    if rng.random() < 0.02:
        play.act(Say(c.CancelWorkflow(reason="early")))
    play.act(Say(start, rng.choice(ACTORS)))
    if play.run.status == "new":
        play.act(Say(start))
    for _ in range(LONGEST):
        if play.run.is_over and rng.random() < 0.3:
            break
        play.act(_next(play, rng, mood))
    _drive_home(play, rng)


def _next(play: Play, rng: Random, mood: Mood) -> Act:
    chance = rng.random()
    if play.run.back:
        chance /= 2
    if chance < mood.stopping:
        stop = c.CancelWorkflow if rng.random() < 0.7 else c.AbortWorkflow
        return Say(stop(reason="enough", by_parent=rng.random() < 0.3), rng.choice(ACTORS))
    if chance < mood.stopping + mood.meddling:
        said = [act for act in play.acts if isinstance(act, Say) and isinstance(act.command, JUDGED)]
        return rng.choice(said) if said and rng.random() < 0.3 else Say(_intrusion(play, rng), rng.choice(ACTORS))
    if rng.random() < mood.pausing:
        return Say(_pause(play, rng), rng.choice((OLGA, OLGA, *ACTORS)))
    if rng.random() < 0.05:
        return Pass(rng.choice((1, 700, 3000)))
    if rng.random() < 0.03:
        return Say(c.SendSignal(name=rng.choice(SIGNALS), payload=random_output(rng)), rng.choice(ACTORS))
    is_patient = play.run.hold is not None and rng.random() < 0.8
    choices = [*_inside(play, rng, mood.failing), *([] if is_patient else _operating(play, rng))]
    return rng.choice(choices or [Say(_intrusion(play, rng))])


def _inside(play: Play, rng: Random, failing: float) -> Iterator[Act]:
    """What the world does by itself."""
    for call in play.host.calls.values():
        yield _on_call(call, rng, failing)
    if play.host.inbox:
        yield Deliver()
        yield Deliver()
    for command in play.host.timers.values():
        patience = failing / 4 if isinstance(command, c.PassDeadline) else 0.5 if failing else 1
        if rng.random() < patience:
            yield Fire(command)
    yield from _from_children(play, rng, failing)
    for notice in play.host.notices:
        yield Say(_on_notice(notice, rng, failing))
    for step in play.run.steps:
        if play.run.is_asked(step):
            yield from _on_question(play, step, rng, failing)
        elif step.is_open and step.of is None:
            yield from _on_wait(play, step, rng)


def _on_wait(play: Play, step: Step, rng: Random) -> Iterator[Act]:
    """What a step waits for comes, or something like it."""
    if play.run.is_at(step, g.WaitEventOp):
        yield Say(c.SendSignal(name=rng.choice(SIGNALS), payload=random_output(rng)), rng.choice(ACTORS))
    elif play.run.is_at(step, g.WaitEventsOp):
        yield Say(_published(play, step.number, rng))
        yield Say(_published(play, step.number, rng))
    if play.run.waits_of(step) and rng.random() < 0.2:
        answer = c.AnswerStep(step=step.number, outcome=g.OK, data=random_output(rng))
        yield Say(answer, rng.choice(ACTORS))


def _published(play: Play, number: int, rng: Random) -> c.TakeEvents:
    """Events that a step is brought: most of them are those that it waits for. None at all has it look again."""
    step = next((each for each in play.run.steps if each.number == number), None)
    waits = play.run.waits_of(step) if step is not None else []
    until = rng.choice(("", (play.host.now + timedelta(seconds=rng.choice((5, 3600)))).isoformat()))
    events = []
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        _, event, key = rng.choice([*waits, *waits, (0, rng.choice(EVENTS), rng.choice(("", "3")))])
        events.append(
            PublishedMessage(
                id=f"e{rng.randint(1, 30)}",
                event=event,
                key=key,
                payload=rng.choice((random_output(rng), {"x": rng.randint(0, 8)}, {"x": 9})),
                match_one=rng.random() < 0.3,
                expires_at=until,
                publisher=rng.choice((None, None, *ACTORS)),
            )
        )
    return c.TakeEvents(step=number, events=events)


def _on_notice(notice: Notify, rng: Random, failing: float) -> c.EndNotice:
    """What became of a notice."""
    error = "no such mailbox" if rng.random() < failing else ""
    return c.EndNotice(step=notice.step, key=notice.key, channel=notice.channel, to=notice.to, error=error)


def _on_question(play: Play, step: Step, rng: Random, failing: float) -> Iterator[Act]:
    """Those who are asked decide, or others; or they do something else to the question."""
    poll = step.poll
    if poll is not None and poll.is_looking:
        yield Say(_found(step.number, rng, failing, is_chain=bool(poll.op.chain and not poll.stages)))
    people = [each for each in ACTORS if poll is not None and (poll.seat_of(each) or poll.vote_of(each))]
    plain = [each for each in people or ACTORS if not may_all(each)] or ACTORS
    for who in (rng.choice(plain), rng.choice(plain), rng.choice(ACTORS)) if failing else (rng.choice(plain), ROOT):
        yield Say(_answer_to(play, step, rng, failing), who)
    for who in (rng.choice(plain), rng.choice(ACTORS)) if failing and rng.random() < 0.5 else ():
        yield Say(_done_to(step.number, rng), who)


def _found(step: int, rng: Random, failing: float, *, is_chain: bool) -> c.PeopleFound:
    """Whom somebody has found who was sent; now and then nobody."""
    if rng.random() < failing / 2:
        return c.PeopleFound(step=step, error=rng.choice(("", "the directory is down")))
    people = [
        Person(
            kind="role" if name == "boss" else "user", name=name, weight=rng.randint(1, 2), for_=rng.choice(("", "eve"))
        )
        for name in rng.sample(("ann", "carl", "dora", "boss"), rng.randint(1, 3))
    ]
    if not is_chain:
        return c.PeopleFound(step=step, people=people)
    stages = [
        Stage(asks=[Ask(by="role" if each.kind == "role" else "user", of=each.name)], agree=rng.choice(("any", "all")))
        for each in people
    ]
    return c.PeopleFound(step=step, stages=[*stages[:2], Stage(asks=[Ask(by="manager")])][: rng.randint(1, 3)])


def _done_to(step: int, rng: Random) -> c.TaskCommand:
    """Something that people do to a question besides deciding it."""
    who = ("ann", "carl", "dora", "eve", "role:boss", "role:clerk")
    choices: list[c.TaskCommand] = [
        c.ClaimTask(step=step),
        c.ClaimTask(step=step),
        c.ReleaseTask(step=step),
        c.DelegateTask(step=step, to=rng.choice(who[:4])),
        c.DelegateTask(step=step, to=rng.choice(who[:4])),
        c.ReassignTask(step=step, to=rng.choice(who), who=rng.choice(("", *who))),
        c.AddApprover(step=step, person=rng.choice(who), weight=rng.randint(1, 2)),
        c.WithdrawDecision(step=step),
        c.WithdrawDecision(step=step),
        c.WithdrawDecision(step=step),
        c.WithdrawTask(step=step, reason=rng.choice(("", "why", "ü" * 100))),
    ]
    return rng.choice(choices)


def _answer_to(play: Play, step: Step, rng: Random, failing: float) -> c.AnswerStep:
    """What somebody answers a question; now and then what it does not offer."""
    op = play.graph.nodes[step.node].op
    assert isinstance(op, g.HumanOp)
    doubt = max(failing, 0.3) if failing and op.asks else failing
    outcome = rng.choice(op.outcomes[1:] or op.outcomes) if rng.random() < doubt else op.outcomes[0]
    if rng.random() < failing / 8:
        outcome = rng.choice(("confirmed", "rejected", g.OK, g.TIMEOUT))
    data = rng.choice((None, None, random_output(rng)))
    comment, poll = rng.choice(("", "why")), step.poll
    named = poll.label(rng.choice((0, poll.stage, poll.stage, *range(1, len(poll.stages) + 1)))) if poll else ""
    return c.AnswerStep(step=step.number, outcome=outcome, comment=comment, data=data, stage=named)


def _from_children(play: Play, rng: Random, failing: float) -> Iterator[Act]:
    for child in play.host.children:
        if not child.has_ended and child.asked == "undo" and child.has_completed:
            yield Say(_undone(child.step, rng, failing))
        elif not child.has_ended:
            yield Say(_ended(child.step, rng, failing))
        elif child.is_stuck:  # An operator has it undone.
            yield Say(c.EndChild(step=child.step, status="cancelled", reason=STUCK if rng.random() < failing else ""))


def _on_call(call: Call, rng: Random, failing: float) -> Act:
    step = call.body.step
    if call.recall is not None and call.recall.stop and rng.random() < 0.2:
        return Answer(c.FailStep(step=step, error="stopped", was_called=False))
    if rng.random() < failing / 10:
        return Say(c.NoteMissingHandler(step=step, handler="h"))
    if not call.is_begun and rng.random() < failing / 4:
        return Answer(c.FailStep(step=step, error="lost", was_called=False, is_final=rng.random() < 0.5))
    if not call.is_begun:
        return Begin(step)
    if rng.random() < failing:
        after = rng.choice((None, None, timedelta(seconds=7)))
        return Answer(c.FailStep(step=step, error=f"e{rng.randint(1, 9)}", is_final=rng.random() < 0.2, after=after))
    return Answer(c.CompleteStep(step=step, output=random_output(rng)))


def _operating(play: Play, rng: Random) -> Iterator[Act]:
    """What operators do for a run that waits for them."""
    letters = [step.number for step in play.run.steps if step.is_dead]
    for number in [step.number for step in play.run.steps if step.is_dead and (step.visit < 4 or rng.random() < 0.1)]:
        given = c.RequeueStep(step=number, input=rng.choice((None, random_input(rng))))
        yield Say(given, REX if number % 3 == 0 and play.run.graph.kind != "process" else OLGA)
    if play.run.status == "paused" and (play.run.hold is not None or not letters):
        yield Say(_resume(play, rng), rng.choice((OLGA, OLGA, *ACTORS)))
    if play.run.hold is not None and rng.random() < 0.02:
        yield Say(c.ExpirePause())
    if play.run.stuck and play.run.stuck.of:
        yield Say(c.RetryCompensation(step=play.run.stuck.of.number))
        if rng.random() < 0.3:
            yield Say(_resume(play, rng), rng.choice((OLGA, OLGA, *ACTORS)))
        if rng.random() < 0.3:
            skipped = r.SkipStep(step=rng.choice((play.run.stuck.of.number, 10_000)), reason="by hand")
            yield Say(skipped, rng.choice((OLGA, OLGA, *ACTORS)))


def _pause(play: Play, rng: Random) -> c.PauseWorkflow:
    until = rng.choice((None, None, timedelta(seconds=3), timedelta(seconds=-1)))
    return c.PauseWorkflow(
        clock=rng.choice((None, "run_on", "stand_still", "stand_still")),
        until=None if until is None else play.host.now + until,
    )


def _resume(play: Play, rng: Random) -> c.ResumeWorkflow:
    """Somebody lets the run go on, or wants to; now and then past a question, or what does not fit."""
    asked = [step.number for step in play.run.steps if play.run.is_asked(step)]
    given: object = rng.choice((None, None, rng.randint(0, 8), "ü" * 200))
    return c.ResumeWorkflow(
        reason="again",
        trigger=rng.choice(("manual", "manual", "event")),
        trigger_id=rng.choice(("", "", "t1", "t2")),
        data=None if given is None else {"x": given},
        override=rng.random() < 0.2,
        step=rng.choice((None, None, 1, *asked)),
        past_wait=rng.choice((None, True, False)),
    )


def _ended(step: int, rng: Random, failing: float) -> c.EndChild:
    if rng.random() >= failing:
        no_return = rng.choice(("", "", "posted"))
        is_undoable = not no_return and rng.random() < 0.7
        return c.EndChild(
            step=step,
            status="completed",
            result=random_output(rng),
            is_undoable=is_undoable,
            no_return=no_return,
        )
    reason = rng.choice(("", STUCK))
    status = "failed" if reason else rng.choice(("failed", "cancelled", "aborted"))
    has_undone = status != "aborted" and rng.random() < 0.8
    return c.EndChild(step=step, status=status, error="child failed", reason=reason, has_undone=has_undone)


def _undone(step: int, rng: Random, failing: float) -> c.EndChild:
    """A child that had completed has undone what it did, or could not, or an operator has ended it."""
    if rng.random() >= failing:
        return c.EndChild(step=step, status="cancelled", error="its parent", has_undone=True)
    reason = rng.choice(("", STUCK))
    return c.EndChild(step=step, status="failed" if reason else "aborted", error="child failed", reason=reason)


def _intrusion(play: Play, rng: Random) -> c.Command:
    """A command that may make no sense at all now; but never an answer that would be believed."""
    step = rng.randint(0, len(play.run.steps) + 2)
    believed = {call.body.step for call in play.host.calls.values()}
    believed |= {each.step for each in play.host.inbox if isinstance(each, c.ReturnStep)}
    believed |= {each.number for each in play.run.steps if each.is_frozen}
    choices: list[c.Command] = [
        c.StartWorkflow(),
        c.AnswerStep(step=step, outcome=rng.choice(("confirmed", "ok"))),
        c.RequeueStep(step=step),
        _pause(play, rng),
        _resume(play, rng),
        c.RetryCompensation(step=step),
        c.NoteMissingHandler(step=step, handler="h"),
        c.SendSignal(name="green"),
        _published(play, step, rng),
        _done_to(step, rng),
        c.EscalateTask(step=step),
        _found(step, rng, 0.5, is_chain=rng.random() < 0.5),
    ]
    choices = [each for each in choices if each not in play.host.timers.values()]
    if step not in believed:
        choices += [c.CompleteStep(step=step, output=1), c.FailStep(step=step, error="late"), c.ReturnStep(step=step)]
    if not any(each.step == step and not each.has_ended for each in play.host.children):
        choices += [c.EndChild(step=step, status="completed"), c.EndChild(step=step, status="failed", error="late")]
    if c.TimeOut(step=step) not in play.host.timers.values():
        choices.append(c.TimeOut(step=step))
    idle: list[c.Command] = [c.BeginWorkflow(), c.EndGrace(), c.PassDeadline()]
    choices += [command for command in idle if command not in play.host.timers.values()]
    return rng.choice(choices)


def _drive_home(play: Play, rng: Random) -> None:
    """Bring a run to its end: let things go well, then cancel, then abort."""
    for turn in range(200):
        if play.run.is_over:
            return
        if turn == 40 and not play.run.back:
            play.act(Say(c.CancelWorkflow(reason="home")))
        elif turn == 120:
            play.act(Say(c.AbortWorkflow(reason="home")))
        else:
            play.act(rng.choice([*_inside(play, rng, 0.0), *_operating(play, rng)] or [Say(c.AbortWorkflow())]))
    raise DisagreementError("the run does not end")


def fails(graph: g.Graph, acts: Iterable[Act], limit: int) -> tuple[list[Act], str]:
    """Play these acts: those up to the first disagreement, and what it says; nothing if there is none."""
    play = Play(graph, limit)
    try:
        for act in acts:
            play.act(act)
    except DisagreementError as error:
        return play.acts, str(error)
    return [], ""


def shortened(graph: g.Graph, acts: list[Act], limit: int) -> tuple[list[Act], str]:
    """The same disagreement, or another one, with fewer acts."""
    acts, told = fails(graph, acts, limit)
    place = len(acts) - 2
    while place > 0:
        fewer, said = fails(graph, [*acts[:place], *acts[place + 1 :]], limit)
        if said:
            acts, told = fewer, said
        place = min(place, len(acts) - 1) - 1
    return acts, told
