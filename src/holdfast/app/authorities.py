"""Who acts on a question: the actor of a request with what the directory knows of them, as themselves or for somebody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from holdfast.app.desk import Desk, checked_key
from holdfast.errors import HoldfastError
from holdfast.kernel.actor import Actor
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.people_records import TASK_PEOPLE
from holdfast.machine.runs.errands import Person
from holdfast.people.authority import Authority, authority
from holdfast.runtime.replies import Reply
from holdfast.store.reading import Reader

T = TypeVar("T")


def authority_at(desk: Desk) -> Authority:
    """What the actor of a desk may do now, as far as the directory knows; ForbiddenError if they are deactivated."""
    return authority(desk.directory, desk.request, desk.service.shared.clock.now())


def on_question(
    desk: Desk,
    instance: InstanceId,
    number: int,
    send: Callable[[Desk], Reply[T]],
    *,
    on_behalf_of: str = "",
    has_decided: bool = False,
) -> Reply[T]:
    """Have something done to a question by whoever the actor is. A tenant without a directory is asked nothing.

    It is for those who are still to decide, or, if `has_decided` says so, for those who have.
    The directory is looked at on a thread for reading, and the command is sent from there.
    """
    now = desk.service.shared.clock.now()
    is_known = desk.request.actor.kind == "system" or desk.directory.is_known_empty(desk.tenant, now)
    if is_known and not on_behalf_of:
        return send(desk)
    looked = desk.read(lambda: _deciding(desk, instance, number, on_behalf_of, has_decided=has_decided))
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
    return _deciding(desk, instance, number, "", has_decided=False).request.actor


def asked_at(reader: Reader, instance: InstanceId, number: int, *, has_decided: bool = False) -> list[Person]:
    """Those who are asked at a step, or have decided it; nobody in particular if whoever may answer is asked."""
    return [
        Person(kind=each.kind, name=each.name)
        for each in reader.rows(TASK_PEOPLE, instance)
        if each.number == number and (bool(each.decided) if has_decided else each.is_open)
    ]


def _deciding(desk: Desk, instance: InstanceId, number: int, on_behalf_of: str, *, has_decided: bool) -> Desk:
    """The desk of whoever decides."""
    named = checked_key(on_behalf_of, "name of whom the actor stands in for", may_be_empty=True)
    found = authority_at(desk)
    with desk.reader.look() as reader:
        headers = reader.headers([instance])
        asked = asked_at(reader, instance, number, has_decided=has_decided)
    definition = headers[0].definition if headers else ""
    actor = found.deciding(asked, definition=definition, on_behalf_of=named)
    return desk if actor is desk.request.actor else desk.acting(replace(desk.request, actor=actor))


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
