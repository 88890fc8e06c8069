"""Who acts on a question: the actor of a request with what the directory knows of them, as themselves or for somebody else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from msgspec.structs import replace

from standfast.calls.context import CallContext, checked_key, nothing
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ForbiddenError, RejectedError, StandfastError
from standfast.kernel.actor import Actor
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import TASKS
from standfast.kernel.row_kinds.tasks import TASK_DECISIONS, TASK_PEOPLE, StoredPerson
from standfast.machine.machine import GraphMachine
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.queries.eligibility import question_of, questions_among
from standfast.machine.model.rejections import Refusal
from standfast.machine.model.state import RunState
from standfast.machine.model.task_state import Question, person_named
from standfast.machine.tasks.entitlement import brought_roles, relied_on
from standfast.people.authority import Authority, Matter, authority, check_heir
from standfast.people.rejections import PeopleRefusal
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader

_OVER = frozenset({Refusal.NOT_WAITING, Refusal.ALREADY_TERMINAL})
"""What is said of a question that is over, for whatever reason."""

Acted: TypeAlias = c.AnswerStep | c.TaskCommand
"""What is done to a question."""

Concerned: TypeAlias = Callable[[TenantReader, InstanceId, int], Matter]
"""Finds those whose matter something is that is done to a question."""

DeciderOf: TypeAlias = Callable[[TenantReader, InstanceHeader, int], Actor]
"""Tells as whom somebody would decide the question of a step; ForbiddenError if they cannot."""


def authority_at(desk: CallContext) -> Authority:
    """What the actor of a desk may do now, as far as the directory knows; ForbiddenError if they are deactivated."""
    found = authority(desk.directory, desk.request, desk.service.shared.clock.now())
    if not desk.grants_capabilities:
        return found
    acting = desk.deciding(found.actor, None)
    return replace(found, actor=acting.request.actor)


def on_question(
    desk: CallContext,
    instance: InstanceId,
    command: Acted,
    *,
    on_behalf_of: str = "",
    concerned: Concerned,
    comment: str = "",
) -> Reply[None]:
    """Have something done to a question by whoever the actor is. A tenant without a directory is asked nothing.

    `concerned` finds those whose matter it is. Whoever it is handed to must be able to decide as far as the directory knows. The
    directory is looked at on a thread for reading, and the command is sent from there.
    """
    heir = _heir(command)
    is_empty = desk.directory.is_known_empty(desk.tenant, desk.service.shared.clock.now())
    is_known = is_empty or (desk.request.actor.kind == "system" and not heir)
    if is_known and not on_behalf_of:
        return _in_time(desk, instance, command, _send(desk, instance, command, comment))

    def look() -> CallContext:
        acting = _deciding(desk, instance, command.step, on_behalf_of, concerned=concerned)
        if heir:
            check_heir(desk.directory, desk.tenant, person_named(heir, via=""), desk.service.shared.clock.now())
        return acting

    looked = desk.consult(look)
    if looked.done():
        return _in_time(desk, instance, command, _sent(looked, instance, command, comment))
    reply: Reply[None] = Reply()
    looked.when_brought(lambda: _pass_on(_sent(looked, instance, command, comment), reply))
    return _in_time(desk, instance, command, reply)


def _heir(command: Acted) -> str:
    """To whom a command hands a question; empty if it does not."""
    match command:
        case c.DelegateTask(to=heir) | c.ReassignTask(to=heir) | c.AddApprover(person=heir):
            return heir
        case _:
            return ""


def decider_at(desk: CallContext) -> DeciderOf:
    """How to find out as whom the actor of a desk would decide a question. The directory is asked now, and the database when it is open."""
    try:
        found = authority_at(desk)
    except ForbiddenError as error:
        refusal = error

        def refuse(_reader: TenantReader, _header: InstanceHeader, _number: int) -> Actor:
            raise refusal

        return refuse

    def decide(reader: TenantReader, header: InstanceHeader, number: int) -> Actor:
        matter, definition = asked_at(reader, header.id, number), header.definition
        try:
            return _acting(desk, found, matter, definition).request.actor
        except RejectedError as error:
            if error.reason != PeopleRefusal.SEVERAL_STOOD_IN_FOR:
                raise
        first = min(found.stood_in_for(matter.people, definition))  # To look, nobody has to say for whom.
        return _acting(desk, found, matter, definition, on_behalf_of=first).request.actor

    return decide


def asked_at(reader: TenantReader, instance: InstanceId, number: int) -> Matter:
    """Those who are asked at a step; nobody in particular if whoever may answer is asked."""
    asked = _asked(reader, instance, number)
    return Matter(
        people=_open(asked),
        settled=[person_of_row(each) for each in asked if each.decided],
        deciders=frozenset(
            each.actor
            for each in reader.rows(TASK_DECISIONS, instance)
            if each.number == number and not each.is_withdrawn
        ),
    )


def open_people(reader: TenantReader, instance: InstanceId, number: int) -> list[Person]:
    """Those who are asked at a step and have not decided; less than `asked_at` tells, for lists of many steps."""
    return _open(_asked(reader, instance, number))


def _asked(reader: TenantReader, instance: InstanceId, number: int) -> list[StoredPerson]:
    return [each for each in reader.rows(TASK_PEOPLE, instance) if each.number == number]


def _open(asked: Sequence[StoredPerson]) -> list[Person]:
    return [person_of_row(each) for each in asked if each.is_open]


def person_of_row(row: StoredPerson) -> Person:
    """Somebody who is or was asked, from their row."""
    return Person(kind=row.kind, name=row.name, via=row.via, for_=row.stands_for)


def have_decided(reader: TenantReader, instance: InstanceId, number: int) -> Matter:
    """Those who have decided at a step."""
    return Matter(people=asked_at(reader, instance, number).settled)


def requester_of(reader: TenantReader, instance: InstanceId, number: int) -> Matter:
    """Who wants the run that asks, if anybody does."""
    found = (each.requester for each in reader.rows(TASKS, instance) if each.number == number)
    return Matter(people=[Person(name=each) for each in found if each])


def may_speak(reader: TenantReader, instance: InstanceId, number: int) -> Matter:
    """Those who talk about a question: those who are asked or have decided in its present stage, and who wants the run."""
    asked, wants = _asked(reader, instance, number), requester_of(reader, instance, number)
    stage = max((each.stage for each in asked), default=0)
    heard = [person_of_row(each) for each in asked if each.stage == stage and (each.is_open or each.decided)]
    return Matter(people=[*heard, *wants.people])


def _deciding(
    desk: CallContext, instance: InstanceId, number: int, on_behalf_of: str, *, concerned: Concerned
) -> CallContext:
    """The desk of whoever decides."""
    named = checked_key(on_behalf_of, "name of whom the actor stands in for", may_be_empty=True)
    found = authority_at(desk)
    with desk.reader.look() as reader:
        headers = reader.headers([instance])
        matter = concerned(reader, instance, number)
        question = _question_at(desk, reader, instance, number) if desk.directory.changes_unseen else None
    return judged(desk, found, matter, headers[0].definition if headers else "", question=question, on_behalf_of=named)


def _question_at(desk: CallContext, reader: TenantReader, instance: InstanceId, number: int) -> Question | None:
    """An open question as the events of its run tell it; None if there is none."""
    tracked = desk.folded(reader, desk.address(instance=instance))
    if tracked is None or not isinstance(tracked.program.decider, GraphMachine):
        return None
    state, machine = cast("RunState", tracked.state), tracked.program.decider
    step = state.open.get(number)
    if step is None or not questions_among(machine.routes_of(state), [step]):
        return None
    return question_of(machine.routes_of(state), state, step)


def judged(
    desk: CallContext,
    found: Authority,
    matter: Matter,
    definition: str,
    *,
    question: Question | None,
    on_behalf_of: str = "",
) -> CallContext:
    """The desk of whoever decides on a matter in a workflow of this name. A directory of the host is asked about those on whom that depends."""
    acting = _acting(desk, found, matter, definition, on_behalf_of=on_behalf_of)
    actor = acting.request.actor
    if question is None:
        return acting.relying_on({actor.on_behalf_of} - {""})
    return acting.relying_on(relied_on(question, actor, brought_roles(acting.asked)))


def _acting(
    desk: CallContext, found: Authority, matter: Matter, definition: str, *, on_behalf_of: str = ""
) -> CallContext:
    """The desk of the actor as themselves, or for somebody else, with the rights that these have."""
    actor = found.deciding(matter, definition=definition, on_behalf_of=on_behalf_of)
    return desk.deciding(actor, found.standing_in(matter, definition=definition, on_behalf_of=on_behalf_of))


def _in_time(desk: CallContext, instance: InstanceId, command: Acted, told: Reply[None]) -> Reply[None]:
    """The same answer; whoever is told that the question is over hears that its time was, if that is why."""
    if desk.is_within:  # The caller's transaction is open, and nothing else is read meanwhile.
        return told
    reply: Reply[None] = desk.reply()

    def settle() -> None:
        error = told.exception()
        if error is None:
            reply.set_result(None)
        elif isinstance(error, RejectedError) and error.reason in _OVER:
            refusal = error
            desk.read(lambda: _expired(desk, instance, command.step, refusal), reply)
        else:
            reply.set_error(error)

    told.when_brought(settle)
    return reply


def _expired(desk: CallContext, instance: InstanceId, number: int, refusal: RejectedError) -> None:
    found = next((each for each in desk.reader.rows(TASKS, instance) if each.number == number), None)
    if found is None or found.status != "expired":
        raise refusal
    message = f"this comes too late: the time of {found.node!r} was over at {found.closed_at}"
    raise RejectedError(reason=Refusal.EXPIRED, message=message)


def _send(desk: CallContext, instance: InstanceId, command: Acted, comment: str) -> Reply[None]:
    address = desk.address(instance=instance)
    return desk.command(address, command, nothing, comment=comment, may_create=False)


def _sent(looked: Reply[CallContext], instance: InstanceId, command: Acted, comment: str) -> Reply[None]:
    reply: Reply[None] = Reply()
    error = looked.exception()
    if error is not None:
        reply.set_error(error)
        return reply
    try:
        return _send(looked.result(), instance, command, comment)
    except StandfastError as refused:  # Whoever waits hears of it, and not the thread that brings it.
        reply.set_error(refused)
        return reply


def _pass_on(answer: Reply[None], reply: Reply[None]) -> None:
    def bring() -> None:
        error = answer.exception()
        if error is not None:
            reply.set_error(error)
        else:
            reply.set_result(answer.result())

    answer.when_brought(bring)
