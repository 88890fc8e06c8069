"""What can happen to a document. Each event says who brought it about, so that rows and the audit can be made from it alone."""

from __future__ import annotations

from typing import Literal, TypeAlias

from standfast.kernel.actor import Principal
from standfast.kernel.codec.message_types import message
from standfast.machine.model.events.base import Data, Happening

How = Literal["passed", "rejected", "amended", "adopted"]
"""How a document came to a status: through a gate; back from one; by an amendment; it had it before the engine knew it."""
Voiding = Literal["edited", "rejected", "entered_again", "interrupted", "superseded", "moved", "repaired", "withdrawn"]


@message(name="document_created")
class DocumentCreated(Happening, frozen=True, kw_only=True):
    """A document came to be."""

    entity_type: str
    id: str
    data: Data
    status: str
    version: int = 1
    amended_from: str = ""
    amended_at: str = ""
    """The status that the document had which it amends."""
    action: str = "create"
    by: str = ""
    kind: Principal | None = None
    """Whether a person, a program or the engine created it; None if that was not kept."""
    roles: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    capabilities: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    """What they could do then: steps that begin by themselves act in their name."""
    on_behalf_of: str = ""
    reason: str = ""
    org: Data = {}  # noqa: RUF012 - every struct gets one of its own
    warnings: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    is_adopted: bool = False
    """Whether it was there before the engine managed it."""
    related: dict[str, Data] = {}  # noqa: RUF012 - every struct gets one of its own
    """What steps read of the documents that it refers to, by field."""
    origin: str = ""
    """The other document whose step has made it, as type/id; empty if none has."""
    depth: int = 0
    """How many documents have made one another until a step made this one; 0 if no step has."""
    content_hash: str = ""
    """The hash of the content as it was written, if values of it were redacted since."""
    hands: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    """Those who wrote the document that it amends."""
    wrote: dict[str, list[str]] = {}  # noqa: RUF012 - every struct gets one of its own
    """The fields that each of them wrote."""
    asked: str = ""
    """The request of whoever created it: what they may do later is looked up by it. Empty if that was not kept, or it was the engine."""
    is_by_field: bool = False
    """Whether its author counts as the author of these fields alone. Events of before do not say, and their authors count for all fields."""


@message(name="document_changed")
class DocumentChanged(Happening, frozen=True, kw_only=True):
    """Fields of a document have other values."""

    version: int
    changes: Data
    """The new values by field; null for a field that has none any more."""
    action: str = "update"
    by: str = ""
    on_behalf_of: str = ""
    run_as: str = ""
    """As whom a step of the workflow itself did it; empty if a person did."""
    step: int = 0
    """The step that did it; 0 if none."""
    reason: str = ""
    warnings: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    related: dict[str, Data] | None = None
    """What steps read of the documents that it refers to; None if that is as it was."""
    origin: str = ""
    """The other document whose step did it, as type/id; empty if none did."""
    content_hash: str = ""
    """The hash of the whole content as it was then, if values of it were redacted since."""
    is_by_field: bool = False
    """Whether its author counts as the author of these fields alone, as in the event before."""


@message(name="document_moved")
class DocumentMoved(Happening, frozen=True, kw_only=True):
    """A document has another status, or is back where it was."""

    status: str
    how: How
    transition: str = ""
    by: str = ""
    on_behalf_of: str = ""
    reason: str = ""
    access_version: int = 0
    """The version of the directory by which whoever asked for it may still do so; 0 if they asked in the same commit, or it was the engine."""


@message(name="transition_requested")
class TransitionRequested(Happening, frozen=True, kw_only=True):
    """Somebody asked for a transition: its way is gone in their name, and the gate performs it."""

    transition: str
    by: str
    kind: Principal = "user"
    """Whether a person, a program or the engine asked: a name alone does not tell, because anybody may be called `system`."""
    on_behalf_of: str = ""
    roles: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    capabilities: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    reason: str = ""
    org: Data | None = None
    warnings: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    related: dict[str, Data] | None = None
    """What steps read of the documents that it refers to; None if that is as it was."""
    asked: str = ""
    """The request of whoever asked: what they may do when a step acts is looked up by it. Empty if that was not kept, or it was the engine."""
    again: bool = False
    """Whether its way is under way already and was denied: the way goes on in the name of this actor, and does not begin anew."""


@message(name="facts_read")
class FactsRead(Happening, frozen=True, kw_only=True):
    """A decision has read settings of the organisation or other documents, and they are not as they were read before."""

    org: Data | None = None
    """The settings; None if they were not read, or are as they were."""
    org_version: int = 0
    """The version of the settings, if they are told; 0 if none was published."""
    related: dict[str, Data] = {}  # noqa: RUF012 - every struct gets one of its own
    """What was read of other documents, by the field that refers to them."""
    sources: dict[str, str] = {}  # noqa: RUF012 - every struct gets one of its own
    """Which document that was, by field, with its version: `customer/C-1@7`; version 0 if there is no such document."""


@message(name="approvals_voided")
class ApprovalsVoided(Happening, frozen=True, kw_only=True):
    """Approvals that no gate has used up count for nothing any more."""

    steps: list[int]
    why: Voiding
    fields: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    """What has changed that they were about."""
    by: str = ""
    reason: str = ""
    """Of a decision that was withdrawn."""
    on_behalf_of: str = ""


@message(name="approvals_applied")
class ApprovalsApplied(Happening, frozen=True, kw_only=True):
    """A gate has used up approvals, or the way out of a slot that no gate follows: they count once."""

    steps: list[int]
    transition: str = ""
    """What the gate has performed; empty if it was the way out of a slot."""
    slot: str = ""
    """The slot that was left; empty if a gate follows it."""


@message(name="approvals_kept")
class ApprovalsKept(Happening, frozen=True, kw_only=True):
    """A slot is gone through again because approvals are void; these stay in force, and nobody is asked for them anew."""

    steps: list[int]
    slot: str


@message(name="rules_applied")
class RulesApplied(Happening, frozen=True, kw_only=True):
    """Rules of the organisation had something to say of a change: what they set and warned of, or have sent."""

    action: str
    rules: list[str]
    """Those that held, each with its effect: `cap warn`."""
    errors: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    """Those that could not be judged after the change, and why: nothing that is done is undone for them."""
    by: str = ""


@message(name="slot_rejected")
class SlotRejected(Happening, frozen=True, kw_only=True):
    """A rejection leaves a slot; all that was under way there is ended."""

    slot: str
    step: int
    node: str
    by: str = ""
    reason: str = ""


@message(name="round_started")
class RoundStarted(Happening, frozen=True, kw_only=True):
    """The workflow of a document that rested goes on."""

    round: int
    status: str
    by: str = ""


@message(name="round_completed")
class RoundCompleted(Happening, frozen=True, kw_only=True):
    """Nothing is under way for the document any more."""

    round: int
    status: str


@message(name="document_superseded")
class DocumentSuperseded(Happening, frozen=True, kw_only=True):
    """Another document has taken the place of this one."""

    superseded_by: str
    status: str
    by: str = ""
    on_behalf_of: str = ""
    reason: str = ""
    fields: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    """What is different there."""
    changes: Data = {}  # noqa: RUF012 - every struct gets one of its own
    """The values before and after of each of these fields; of sensitive ones only that they changed."""


@message(name="workflow_switched")
class WorkflowSwitched(Happening, frozen=True, kw_only=True):
    """The document follows another version of its workflow from here on; what is under way goes on there."""

    tenant: str
    version: str
    before: str
    """The version that it followed until now."""
    nodes: dict[str, str] = {}  # noqa: RUF012 - every struct gets one of its own
    """What nodes are called now that were called otherwise."""
    by: str = ""
    reason: str = ""
    on_behalf_of: str = ""
    eased: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    """What is not the same any more, by its name before: approvals that are asked of others, by other rules, or not for sure; steps ahead of
    approvals; and transitions, actions, statuses and fields that take fewer rights."""


@message(name="document_redacted")
class DocumentRedacted(Happening, frozen=True, kw_only=True):
    """Values of fields were taken out of the history, and hashes put in their place."""

    fields: list[str]
    events: dict[str, list[str]]
    """The events that were rewritten, by their numbers: the hash of each before and after."""
    by: str = ""
    on_behalf_of: str = ""
    reason: str = ""


DocumentEvent: TypeAlias = (
    DocumentCreated
    | DocumentChanged
    | DocumentMoved
    | TransitionRequested
    | FactsRead
    | ApprovalsVoided
    | ApprovalsApplied
    | ApprovalsKept
    | RulesApplied
    | SlotRejected
    | RoundStarted
    | RoundCompleted
    | DocumentSuperseded
    | WorkflowSwitched
    | DocumentRedacted
)
