"""What can be asked of a document."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from standfast.kernel.codec.message_types import message

Data = dict[str, object]


class _DocumentCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Something asked of a document."""

    reason: str = ""
    origin: str = ""
    """The other document whose step asks for it, as type/id, or `schedule/id#number`; empty if none does."""


@message(name="CreateDocument")
class CreateDocument(_DocumentCommand, frozen=True, kw_only=True):
    """Begin the life of a document; its id is the business key of the run."""

    data: Data = {}
    action: str = "create"
    undo: str = ""
    """The action that takes it back, if a step creates it: whoever may not do that does not create it either."""
    changes: Data | None = None
    """What the handler of the action makes of it; None if it has none."""
    depth: int = 0
    """How many documents have made one another until a step makes this one; 0 if no step does."""
    amended_from: str = ""
    """The document that it takes the place of."""
    amended_at: str = ""
    """The status that this one has, or had before an amendment that is not in force."""
    judged_as: str = ""
    """The edit that an amendment is judged as, besides as an amendment; empty for `update`."""
    redacted: list[str] = []
    """The fields of the data that are as a redaction has left them there."""
    hands: list[str] = []
    """Those who wrote that one, whose content it goes on with."""
    wrote: dict[str, list[str]] = {}
    """The fields that each of them wrote."""
    involved: list[str] = []
    """Who else has brought it about, besides the actor."""
    status: str = ""
    """The status that it has had before the engine knew it; empty for a new one."""
    version: int = 1
    looks_up: bool = False
    """Whether the engine looks up those whom the definition names before they are waited for."""


@message(name="Mutate")
class Mutate(_DocumentCommand, frozen=True, kw_only=True):
    """Change a document."""

    action: str = "update"
    undo: str = ""
    """The action that takes it back, if a step of another document does it: whoever may not do that does not do this either."""
    payload: Data = {}
    changes: Data | None = None
    """What the handler of the action makes of it; None if it has none."""
    expected_version: int | None = None
    """The version that the caller has seen; None means that it does not matter."""
    amends: bool = False
    """Whether the caller wants an amendment in place, whatever the window."""


@message(name="RequestTransition")
class RequestTransition(_DocumentCommand, frozen=True, kw_only=True):
    """Ask for a lifecycle transition."""

    transition: str
    expected_version: int | None = None


@message(name="SupersedeDocument")
class SupersedeDocument(_DocumentCommand, frozen=True, kw_only=True):
    """Another document takes the place of this one."""

    superseded_by: str
    expected_version: int | None = None
    fields: list[str] = []
    """What is different there."""
    changes: Data = {}
    """The new values of these fields; null for one that has none there."""
    is_forced: bool = False
    """Whether it follows from an edit that the window allows only as an amendment; otherwise somebody asks for it by name."""


@message(name="TellDrift")
class TellDrift(_DocumentCommand, frozen=True, kw_only=True):
    """Another system, which keeps the data of the document, has changed it although that is refused here."""

    action: str = "update"
    fields: list[str] = []
    """What it has changed, as far as everybody may know."""
    refused: str = ""
    """Why that was refused, as a code."""
    expected_version: None = None


@message(name="SwitchWorkflow")
class SwitchWorkflow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Have the document follow another version of its workflow from where it is."""

    version: str
    nodes: dict[str, str] = {}
    """What nodes are called there that are called otherwise here."""
    reason: str = ""


DocumentCommand: TypeAlias = Mutate | RequestTransition | SupersedeDocument | SwitchWorkflow | TellDrift
"""What can be asked of a document that is there."""
