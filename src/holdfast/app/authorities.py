"""Who acts on a question: the actor of a request with what the directory knows of them, as themselves or for somebody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from holdfast.app.desk import Desk, checked_key
from holdfast.errors import HoldfastError
from holdfast.kernel.actor import Actor
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.people_records import TASK_DECISIONS, TASK_PEOPLE
from holdfast.kernel.records import TASKS
from holdfast.machine.runs.errands import Person
from holdfast.machine.runs.question import person_named
from holdfast.people.authority import Authority, Matter, authority, check_heir
from holdfast.runtime.replies import Reply
from holdfast.store.reading import Reader

T = TypeVar("T")

Concerned: TypeAlias = Callable[[Reader, InstanceId, int], Matter]
"""Finds those whose matter something is that is done to a question."""


def authority_at(desk: Desk) -> Authority:
    """What the actor of a desk may do now, as far as the directory knows; ForbiddenError if they are deactivated."""
    found = authority(desk.directory, desk.request, desk.service.shared.clock.now())
    if not desk.grants_capabilities:
        return found
    acting = desk.acting(replace(desk.request, actor=found.actor), is_looked_up=True)
    return replace(found, actor=acting.request.actor)


def on_question(
    desk: Desk,
    instance: InstanceId,
    number: int,
    send: Callable[[Desk], Reply[T]],
    *,
    on_behalf_of: str,
    concerned: Concerned,
    heir: str = "",
) -> Reply[T]:
    """Have something done to a question by whoever the actor is. A tenant without a directory is asked nothing.

    `concerned` finds those whose matter it is. Whoever it is handed to, the `heir`, must be able to decide as far as the directory knows.
    The directory is looked at on a thread for reading, and the command is sent from there.
    """
    is_empty = desk.directory.is_known_empty(desk.tenant, desk.service.shared.clock.now())
    is_known = is_empty or (desk.request.actor.kind == "system" and not heir)
    if is_known and not on_behalf_of:
        return send(desk)

    def look() -> Desk:
        acting = _deciding(desk, instance, number, on_behalf_of, concerned=concerned)
        if heir:
            check_heir(desk.directory, desk.tenant, person_named(heir, via=""), desk.service.shared.clock.now())
        return acting

    looked = desk.read(look)
    if looked.done():
        return _sent(looked, send)
    reply: Reply[T] = Reply()
    looked.when_brought(lambda: _pass_on(_sent(looked, send), reply))
    return reply


def decider_of(desk: Desk, instance: InstanceId, number: int) -> Actor:
    """As whom the actor of a desk would decide a question; as themselves where the directory knows nobody."""
    now = desk.service.shared.clock.now()
    if desk.request.actor.kind == "system" or desk.directory.is_known_empty(desk.tenant, now):
        return desk.request.actor
    return _deciding(desk, instance, number, "", concerned=asked_at).request.actor


def asked_at(reader: Reader, instance: InstanceId, number: int) -> Matter:
    """Those who are asked at a step; nobody in particular if whoever may answer is asked."""
    asked = [each for each in reader.rows(TASK_PEOPLE, instance) if each.number == number]
    return Matter(
        people=[Person(kind=each.kind, name=each.name) for each in asked if each.is_open],
        settled=[Person(kind=each.kind, name=each.name) for each in asked if each.decided],
        deciders=frozenset(
            each.actor
            for each in reader.rows(TASK_DECISIONS, instance)
            if each.number == number and not each.is_withdrawn
        ),
    )


def have_decided(reader: Reader, instance: InstanceId, number: int) -> Matter:
    """Those who have decided at a step."""
    return Matter(people=asked_at(reader, instance, number).settled)


def requester_of(reader: Reader, instance: InstanceId, number: int) -> Matter:
    """Who wants the run that asks, if anybody does."""
    found = (each.requester for each in reader.rows(TASKS, instance) if each.number == number)
    return Matter(people=[Person(name=each) for each in found if each])


def may_speak(reader: Reader, instance: InstanceId, number: int) -> Matter:
    """Those who talk about a question: those who are asked, and who wants the run."""
    asked, wants = asked_at(reader, instance, number), requester_of(reader, instance, number)
    return replace(asked, people=[*asked.people, *wants.people])


def _deciding(desk: Desk, instance: InstanceId, number: int, on_behalf_of: str, *, concerned: Concerned) -> Desk:
    """The desk of whoever decides."""
    named = checked_key(on_behalf_of, "name of whom the actor stands in for", may_be_empty=True)
    found = authority_at(desk)
    with desk.reader.look() as reader:
        headers = reader.headers([instance])
        matter = concerned(reader, instance, number)
    definition = headers[0].definition if headers else ""
    actor = found.deciding(matter, definition=definition, on_behalf_of=named)
    if actor is desk.request.actor and not desk.grants_capabilities:
        return desk
    return desk.acting(replace(desk.request, actor=actor), is_looked_up=True)


def _sent(looked: Reply[Desk], send: Callable[[Desk], Reply[T]]) -> Reply[T]:
    reply: Reply[T] = Reply()
    error = looked.exception()
    if error is not None:
        reply.set_error(error)
        return reply
    try:
        return send(looked.result())
    except HoldfastError as refused:  # Whoever waits hears of it, and not the thread that brings it.
        reply.set_error(refused)
        return reply


def _pass_on(answer: Reply[T], reply: Reply[T]) -> None:
    def bring() -> None:
        error = answer.exception()
        if error is not None:
            reply.set_error(error)
        else:
            reply.set_result(answer.result())

    answer.when_brought(bring)
