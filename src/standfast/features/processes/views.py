"""What the engine shows of processes: instances, what a caller can do with one, and their trail, in the words of their specification."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from standfast.kernel.ids import InstanceId

StepType = Literal["action", "approval", "system", "wait", "notification", "terminal"]
Category = Literal["step", "lifecycle"]


class ProcessInstance(msgspec.Struct, frozen=True, kw_only=True):
    """One instance of a process."""

    id: InstanceId
    workflow_id: str
    workflow_version: str
    title: str = ""
    """What the definition is called; its id if its file does not say."""
    tenant_id: str
    partition_id: str
    subject_id: str
    """Who started it."""
    business_key: str
    current_step: str
    status: str
    """`active`, `suspended`, `completed`, `failed` or `cancelled`."""
    outcome: str
    """What it came to, in a word of its terminal step; empty if that has none."""
    state: dict[str, object]
    """What has gathered. `_last_error` tells of a failure that it stands at, or has gone on from; its text is for callers with `execution:read`."""
    version: int
    """How often it was changed, the start included; give it as `expected_version` to change nothing that was changed meanwhile."""
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    """When the time of the whole is over; None if it has no end, or has passed already."""


class ProcessChoice(msgspec.Struct, frozen=True, kw_only=True):
    """An event by which the current step can be left."""

    event: str
    label: str
    """What the button is called; the event itself if the definition does not say."""
    is_allowed: bool
    """Whether the caller could advance by it now, with the input that its form asks for."""
    why_not: str = ""
    """What is missing, if it is not."""


class ProcessStep(msgspec.Struct, frozen=True, kw_only=True):
    """The step that an instance is at."""

    id: str
    type: StepType
    title: str
    description: str
    entered_at: datetime | None
    form: dict[str, object] | None
    """What is to be given with an answer: a JSON Schema, with titles, and `order`; None if nothing is, or if the caller is not asked."""


class ProcessEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the trail."""

    id: str
    workflow_instance_id: InstanceId
    step_id: str
    event: str
    actor_id: str
    """Who did it; `system` for what follows by itself."""
    on_behalf_of: str = ""
    """Whom the actor stood in for; empty if the actor acted for themselves."""
    data: dict[str, object]
    comment: str
    timestamp: datetime
    category: Category = "step"


class ProcessDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """What a front end needs to show an instance to one caller."""

    instance: ProcessInstance
    step: ProcessStep
    choices: list[ProcessChoice]
    """The events of the step; those that are not allowed too, if the caller is one of those who are asked."""
    waiting_for: list[str]
    """Who is asked: users by their ids, roles as `role:<name>`; empty if nobody in particular is."""
    may_cancel: bool
    history: list[ProcessEvent]
    """The latest entries of the trail, at most a hundred; `events` has all of them."""


class ProcessSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One instance in a list."""

    id: InstanceId
    workflow_id: str
    workflow_version: str
    title: str = ""
    """What the definition is called; its id if its file does not say."""
    subject_id: str
    business_key: str
    current_step: str = ""
    """The id of the step that it is at."""
    step_title: str = ""
    """What people read of that step; its id if the definition does not say."""
    status: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


class ExpiredProcess(msgspec.Struct, frozen=True, kw_only=True):
    """An active instance whose time is over, or will be."""

    id: InstanceId
    tenant_id: str
    partition_id: str
    workflow_id: str
    workflow_version: str
    subject_id: str
    business_key: str
    expires_at: datetime
    """When its time is over; where it goes then, its definition says."""


class ProcessPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a list."""

    items: list[ProcessSummary]
    total: int
    """How many there are on all pages; the largest number that is counted to where `is_total_exact` is False."""
    is_total_exact: bool = True
    """Whether that is all of them: no more than a thousand are counted, unless the caller asks for all."""
    next: InstanceId | None
    """Give it as `cursor` for the next page; None if this is the last one."""
