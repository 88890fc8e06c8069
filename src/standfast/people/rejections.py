"""Why a change of the directory or of a chain is refused, or somebody may not act: the codes, each with its meaning."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from standfast.errors import ForbiddenError, RejectedError
from standfast.kernel.actor import Actor
from standfast.machine.model.rejections import Refusal


class PeopleRefusal(StrEnum):
    """A code of a refusal. The page `docs/reference/rejections.md` lists them too."""

    DEACTIVATED = "deactivated"
    """The person or program is deactivated: it can neither act nor be given anything; activate it, or take another."""
    CREDENTIAL_ENDED = "credential_ended"
    """The key, the session or the token that the actor came with was revoked or has ended; come with another one."""
    OTHER_PARTITION = "other_partition"
    """The credential is bound to a part of the tenant, and this is about another one, or about the whole."""
    UNKNOWN_PERSON = "unknown_person"
    """The directory does not know the person who is to be asked; name somebody whom it knows, or put them into it."""
    ROLE_OF_NOBODY = "role_of_nobody"
    """The role that is to be asked has no holder who could decide; grant it to somebody, or name another one."""
    MANAGER_CIRCLE = "manager_circle"
    """Somebody would be their own manager, directly or by way of others."""
    EMPTY_PERIOD = "empty_period"
    """The period ends before it begins, or at the same instant; give an end that lies after the beginning."""
    NOT_STANDING_IN = "not_standing_in"
    """The actor does not stand in for the person in this matter; the message names those for whom they do."""
    SEVERAL_STOOD_IN_FOR = "several_stood_in_for"
    """The actor stands in for several of those who are asked; `on_behalf_of` names one of them."""
    EMPTY_CHAIN = "empty_chain"
    """An approval chain has at least one stage."""
    EMPTY_STAGE = "empty_stage"
    """A stage of an approval chain asks at least one person or role."""
    BAD_STAGE = "bad_stage"
    """A stage of an approval chain says something that no question could mean."""


def refused(code: PeopleRefusal | Refusal, message: str) -> RejectedError:
    """A refusal with one of these codes, or with one that a run refuses for the same reason."""
    return RejectedError(reason=code.value, message=message)


def forbidden(code: PeopleRefusal, message: str) -> ForbiddenError:
    """The same, because of who asks."""
    return ForbiddenError(reason=code.value, message=message)


def check_active(actor: Actor, is_active: Callable[[str], bool]) -> None:
    """Raise ForbiddenError if the actor of a request is deactivated, or the person for whom the request says that it acts."""
    for name in dict.fromkeys((actor.id, actor.on_behalf_of)):
        if name and not is_active(name):
            told = f"{name!r} is deactivated and cannot act; somebody else has to"
            raise forbidden(PeopleRefusal.DEACTIVATED, told)
