"""Putting a question to people: whom its definition, a rule or a chain names, or whom the engine has found. Nobody fit: it fails closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from standfast.errors import ExpressionError
from standfast.expressions import Expression
from standfast.graph.model import HumanOp
from standfast.graph.values.approver_rules import CHAIN, ROLE, RULE, USER, Ask, agreement_in_words
from standfast.graph.values.external_reads import reads_of
from standfast.kernel.decision import Answer, Ignored
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.commands.run_commands import PeopleFound
from standfast.machine.model.engine_tasks import FindPeople, Person
from standfast.machine.model.events import ChainFound, PauseReason, PeopleAsked, PeopleSought
from standfast.machine.model.queries.eligibility import barred_names, question_of
from standfast.machine.model.queries.expression_scope import ENTITY
from standfast.machine.model.queries.voting import verdict, vote_of
from standfast.machine.model.state import Data, StepState
from standfast.machine.model.task_state import (
    MISSING,
    Question,
    Seat,
    is_name,
    person_named,
    person_of,
    places_of,
    shown,
)
from standfast.machine.tasks.entitlement import is_left_out
from standfast.machine.tasks.notifications import tell_of_task

NO_APPROVER: PauseReason = "no_approver"
MOST_PEOPLE = 1000
"""Whom one question can ask: they are part of the state of the run, and each has a row."""

_LATE = Ignored(reason="nobody waits for these people any more")
_CAPABLE = Ignored(reason="those who are asked can decide, as far as is known")


def ask(turn: DecisionBuilder, step: StepState) -> None:
    """Put an open question to those whom it is for now: its own people, or those of the stage that its chain is at."""
    op, question = _op(turn, step), question_of(turn.routes, turn.state, step)
    if question.stages:
        _ask(turn, step, question.stages[question.stage - 1].asks)
    elif op.chain:
        _seek(turn, step, [Ask(by=CHAIN, of=op.chain)])
    elif op.all_asks:  # Else everybody is, but for those whom it keeps apart.
        _ask(turn, step, op.all_asks)


def leave_out(turn: DecisionBuilder, step: StepState) -> None:
    """Those whom the definition names are asked already: leave out who decided another step that is kept apart from this one."""
    if not turn.routes.apart(step.node):
        return
    seats = question_of(turn.routes, turn.state, step).seats
    out = [place for place, seat in enumerate(seats, 1) if is_left_out(turn, step, seat)]
    if not out:
        return
    trouble = _trouble(turn, step, [each.person for each in seats], [place - 1 for place in out], lacking=(), notes="")
    turn.emit(PeopleAsked(step=step.number, trouble=trouble, stays=True, out=out))
    if trouble:
        turn.pause(NO_APPROVER, trouble)


def look_up(turn: DecisionBuilder, step: StepState) -> None:
    """Find out whether those can decide whom the definition names. They are asked all the same, and may be faster."""
    asks = list(_op(turn, step).all_asks)
    if asks:
        _send_out(turn, step, asks)


def people_found(turn: DecisionBuilder, command: PeopleFound) -> Answer | None:
    """The engine has come back with those who are to be asked, or with the stages of a chain."""
    step, question = turn.state.open.get(command.step), turn.state.questions.get(command.step)
    if step is None or (question is not None and question.trouble):
        return _LATE
    if question is None or not question.is_looking:
        op = turn.routes.node(step.node).op
        was_sought = turn.state.looks_up and isinstance(op, HumanOp) and op.is_settled
        return _look_at(turn, step, command) if was_sought else _LATE
    op = _op(turn, step)
    if command.stages and not question.stages:
        found = ChainFound(step=step.number, stages=command.stages, version=command.chain_version, why=command.why)
        turn.emit(found)
        ask(turn, step)
    elif op.chain and not question.stages:
        _put(turn, step, [], command.why, error=command.error or f"the chain {op.chain!r} has no stages")
    else:
        _put(turn, step, command.people, command.why, error=command.error)
    return None


def _op(turn: DecisionBuilder, step: StepState) -> HumanOp:
    op = turn.routes.node(step.node).op
    assert isinstance(op, HumanOp)
    return op


def _ask(turn: DecisionBuilder, step: StepState, asks: Sequence[Ask]) -> None:
    found: list[Ask] = []
    people: list[Person] = []
    why: list[Data] = []
    for place, each in enumerate(asks):
        if each.by != RULE:
            found.append(each)
            people += [person_of(each)] if each.is_direct else []
            continue
        try:
            named, blanks = _ruled(turn, step, each, place)
        except ExpressionError as error:
            _put(turn, step, [], why, error=f"the rule {each.of!r} cannot be computed: {error}")
            return
        why.append({"resolver": RULE, "of": each.of, "result": [shown(person) for person in named or ()]})
        if blanks:
            why[-1][MISSING] = [each.words] * blanks
        if named is None:
            why[-1]["notes"] = [f"the rule {each.of!r} yields what is nobody's name"]
            _put(turn, step, [], why)
            return
        people += named
        found += [Ask(by=ROLE if p.kind == "role" else USER, of=p.name, weight=p.weight, via=p.via) for p in named]
    if all(each.is_direct for each in found) and not (turn.state.looks_up and found):
        _put(turn, step, people, why)
    else:
        _seek(turn, step, found, why)


def _ruled(turn: DecisionBuilder, step: StepState, ask_: Ask, place: int) -> tuple[list[Person] | None, int]:
    """Those whom a rule yields, and how many blanks besides. None if it yields something else too: whoever has to agree besides is not known then."""
    question = turn.state.questions.get(step.number)
    known = None if question is not None and question.stages else turn.routes.rule(step.node, place)
    rule = known or Expression.from_data(ask_.rule or {})
    turn.look(reads_of([rule]))
    value = rule.evaluate(turn.names_for(turn.state.tokens[step.token], step.node))
    given = value if isinstance(value, list) else [value]
    names = [each for each in given if each is not None and each != ""]
    people = [person_named(each, via=f"rule {ask_.of}", weight=ask_.weight) for each in names if isinstance(each, str)]
    is_clear = len(people) == len(names) and all(is_name(each.name) for each in people)
    return (people if is_clear else None), len(given) - len(names)


def _seek(turn: DecisionBuilder, step: StepState, asks: list[Ask], why: Sequence[Data] = ()) -> None:
    turn.emit(PeopleSought(step=step.number, asks=asks, why=list(why)))
    _send_out(turn, step, asks)


def _known(turn: DecisionBuilder, step: StepState) -> Data:
    """What resolvers are told: the data of the step, and the document if the run is one."""
    data, document = turn.state.tokens[step.token].data, turn.state.document
    return data if document is None else {**data, ENTITY: document.names()}


def _send_out(turn: DecisionBuilder, step: StepState, asks: list[Ask]) -> None:
    is_settled = all(each.is_direct for each in asks)
    errand = FindPeople(
        step=step.number,
        node=step.node,
        asks=asks,
        requester=turn.state.requester,
        data={} if is_settled else _known(turn, step),
        barred=barred_names(turn.routes, turn.state, step),
        in_person=not _op(turn, step).delegable,
    )
    turn.send_out(errand)


def _look_at(turn: DecisionBuilder, step: StepState, command: PeopleFound) -> Answer | None:
    """It was looked up whether those can decide who are asked already. If they cannot, the run waits for somebody who can."""
    op, question = _op(turn, step), question_of(turn.routes, turn.state, step)
    able = {(each.kind, each.name) for each in command.people} | {("user", each.for_) for each in command.people}
    named = {(each.kind, each.name) for each in map(person_of, op.all_asks)} - able
    places = [
        place for place, seat in question.counted if seat.is_free and (seat.person.kind, seat.person.name) in named
    ]
    lost = [question.seats[place - 1].person for place in places]
    if command.error or not lost or can_do_without(op, question, lost):
        return _CAPABLE
    names = ", ".join(shown(each) for each in lost)
    trouble = f"nobody can decide {step.node!r}: {names} cannot{notes_of(command.why)}"
    turn.emit(PeopleAsked(step=step.number, why=command.why, trouble=trouble, stays=True, lost=places))
    turn.pause(NO_APPROVER, trouble)
    return None


def can_do_without(op: HumanOp, question: Question, lost: Sequence[Person]) -> bool:
    """Whether the others can agree without those who cannot decide any more.

    `all` are all who could decide when they were asked: `ask` has left out whom four eyes keep out. Whoever is lost since is still one of them, and
    somebody else has to take the place.
    """
    votes = [
        (seat.person.weight, None if seat.given is None else vote_of(op, seat.given.outcome))
        for _, seat in question.counted
        if seat.person not in lost
    ]
    return question.agree != "all" and verdict(votes, question.agree, question.least) != "against"


def _put(turn: DecisionBuilder, step: StepState, people: Sequence[Person], why: list[Data], *, error: str = "") -> None:
    """Ask these people, as far as they may decide; if they cannot, the run waits for somebody who mends that."""
    question = question_of(turn.routes, turn.state, step)
    asked, crowded = places_of(question, people)
    if len(question.seats) + len(asked) > MOST_PEOPLE:  # To ask some of them would be another question.
        error = f"{len(asked)} people are to be asked, and {MOST_PEOPLE} is the most that one question can ask"
        asked = []
    left_out = [place for place, each in enumerate(asked) if is_left_out(turn, step, Seat(person=each))]
    found = why if question.stages else [*question.why, *why]
    lacking = [*_unmanned(found), *crowded] if question.agree == "all" else []
    missing = len(lacking)
    if error:
        trouble = f"nobody can be asked at {step.node!r}: {error}"
    else:
        trouble = _trouble(turn, step, asked, left_out, lacking=lacking, notes=notes_of(found))
    told = PeopleAsked(step=step.number, people=asked, left_out=left_out, why=why, trouble=trouble, missing=missing)
    turn.emit(told)
    if trouble:
        turn.pause(NO_APPROVER, trouble)
    if _op(turn, step).channels:
        seats = [Seat(person=each) for each in asked]
        tell_of_task(turn, step, seats, "opened", count=max(1, question.stage))


def _trouble(
    turn: DecisionBuilder,
    step: StepState,
    asked: Sequence[Person],
    left_out: Sequence[int],
    *,
    lacking: Sequence[str],
    notes: str,
) -> str:
    """Why these people cannot decide a question; empty if they can."""
    op, question = _op(turn, step), question_of(turn.routes, turn.state, step)
    given = [(seat.person.weight, vote_of(op, seat.given.outcome)) for _, seat in question.asked if seat.given]
    if not asked and not given:
        return f"nobody can decide {step.node!r}: nobody was found who is to be asked{notes}"
    if lacking:
        names = ", ".join(dict.fromkeys(lacking))
        return f"nobody can decide {step.node!r}: it takes all of them, and nobody can for {names}{notes}"
    fit = [(each.weight, None) for place, each in enumerate(asked) if place not in left_out]
    if verdict([*given, *fit], question.agree, question.least) != "against":
        # Nobody has ended it by what was decided, and without another one nobody can.
        told = "those who have decided are all who can be asked, and somebody else was to decide besides"
        return "" if fit else f"nobody can decide {step.node!r}: {told}"
    if left_out and not fit:
        names = ", ".join(shown(asked[place]) for place in left_out)
        return f"nobody can decide {step.node!r}: {names} may not, because they started it or decided another step"
    needed = agreement_in_words(question.agree, question.least)
    able = f"; {len(given)} have decided, and {len(fit)} others" if given else f", and {len(fit)}"
    return f"nobody can decide {step.node!r}: it takes {needed}{able} can be asked"


def _unmanned(why: list[Data]) -> list[str]:
    """The places that nobody can decide from: of people who were named and cannot act, and of a rule, a resolver or a role without anybody."""
    found: list[str] = []
    for each in why:
        part = [f"{each['resolver']}:{each['of']}".rstrip(":")] if each.get("result") == [] else []
        found += cast("list[str]", each.get(MISSING)) or part
    return found


def notes_of(why: list[Data]) -> str:
    """What those say who have looked."""
    notes = [str(note) for each in why for note in cast("list[object]", each.get("notes", []))]
    return f": {', '.join(notes)}" if notes else ""
