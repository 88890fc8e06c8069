"""Why contracts and bodies are not published, and no document begins: the codes, each with its meaning."""

from __future__ import annotations

from enum import StrEnum

from standfast.errors import ForbiddenError, RejectedError
from standfast.kernel.actor import Actor
from standfast.kernel.decision import NOT_ALLOWED

DESIGN, PUBLISH, GOVERN = "bodies:design", "bodies:publish", "bodies:govern"
"""What it takes to draft a body, to publish and archive one, and to say what publishing takes."""
RUN_AS = "bodies:run_as"
"""What it takes to publish a body whose steps act in the name of the engine or of a service account."""
PUBLISH_CONTRACTS = "contracts:publish"
"""What it takes to say what a type of documents is."""


class BlueprintRefusal(StrEnum):
    """A code of a refusal. The page `docs/reference/rejections.md` lists them too."""

    DRAFT_CHANGED = "DRAFT_CHANGED"
    """Somebody has saved, published or discarded the draft since the caller looked; read it again, and decide anew."""
    BODY_SUPERSEDED = "BODY_SUPERSEDED"
    """Another version was published since the draft was begun; compare the two, and name the version that this one replaces."""
    SECOND_PERSON_REQUIRED = "SECOND_PERSON_REQUIRED"
    """The organisation wants that nobody publishes what they drafted; have somebody else publish it."""
    REVISION_REQUIRED = "REVISION_REQUIRED"
    """The organisation wants two people, so whoever publishes names the revision that they have reviewed; read the draft, and give its `revision`."""
    CONTRACT_VERSION_REUSED = "CONTRACT_VERSION_REUSED"
    """The version of the contract is published and says something else, or a newer one is; raise `version`."""
    ENVELOPE_VERSION_REUSED = "ENVELOPE_VERSION_REUSED"
    """The lifecycle or the slots have changed under the version of an envelope that exists; raise `lifecycle.version`."""
    CONTRACT_SHARED = "CONTRACT_SHARED"
    """All tenants share a contract of the type, which tenants may not replace; take another type, or have the shared one published with `replaceable`."""
    CONTRACT_FEWER_RIGHTS = "CONTRACT_FEWER_RIGHTS"
    """The tenant's contract takes fewer rights than the shared one of the type; ask for the same on every way, and keep windows and fields as strict."""
    CONTRACT_BREAKS_BODIES = "CONTRACT_BREAKS_BODIES"
    """Published bodies would not compile with the new contract; the message lists them. Change it, or publish it by force."""
    WORKFLOW_ARCHIVED = "WORKFLOW_ARCHIVED"
    """All workflows that the organisation has published for the type are archived, so no document begins, or is moved there; publish a body."""
    WORKFLOW_SUSPENDED = "WORKFLOW_SUSPENDED"
    """The workflow in force is taken out of use, and none before it is there to stand in, so no document begins, or documents were to be moved to one out of use; publish another, or put it back."""
    NOT_SUSPENDED = "NOT_SUSPENDED"
    """The workflow is in use, so that nothing can be put back; `workflows.suspensions` lists those that are not."""
    WORKFLOW_COMPILER_STALE = "WORKFLOW_COMPILER_STALE"
    """The workflow in force was compiled by another version of the compiler, so no document begins with it; compile it again."""


def refused(code: BlueprintRefusal, message: str) -> RejectedError:
    """A refusal with one of these codes."""
    return RejectedError(reason=code.value, message=message)


def permit(actor: Actor, what: str, *capabilities: str) -> None:
    """ForbiddenError unless somebody has one of the capabilities."""
    if any(map(actor.may, capabilities)):
        return
    told = " or ".join(map(repr, capabilities))
    raise ForbiddenError(reason=NOT_ALLOWED, message=f"{actor.id!r} may not {what}: that takes the capability {told}")
