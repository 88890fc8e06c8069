"""`standfast processes`: processes for their users; `standfast advance` advances one."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from standfast.calls.references import checked_instance
from standfast.cli.framework import verbs
from standfast.cli.options import Duration, Instant, listed, moment_after, page_of, place_of, reason_option
from standfast.cli.output import Columns, cell, json_option, print_fields, print_json, print_list
from standfast.cli.run_arguments import run_argument
from standfast.cli.target import Target, tenant_scope
from standfast.features.processes.views import (
    ExpiredProcess,
    ProcessDescriptor,
    ProcessInstance,
    ProcessSummary,
)
from standfast.store.ports.pauses import ALL_TENANTS

LISTING: Columns[ProcessSummary] = {
    "ID": lambda each: each.id,
    "WORKFLOW": lambda each: each.workflow_id,
    "VERSION": lambda each: each.workflow_version,
    "STATUS": lambda each: each.status,
    "STEP": lambda each: each.current_step,
    "KEY": lambda each: each.business_key,
    "BY": lambda each: each.subject_id,
    "STARTED": lambda each: each.created_at,
    "EXPIRES": lambda each: each.expires_at,
}

EXPIRED: Columns[ExpiredProcess] = {
    "ID": lambda each: each.id,
    "TENANT": lambda each: each.tenant_id,
    "PARTITION": lambda each: each.partition_id,
    "WORKFLOW": lambda each: each.workflow_id,
    "KEY": lambda each: each.business_key,
    "BY": lambda each: each.subject_id,
    "EXPIRES": lambda each: each.expires_at,
}


@verbs("processes")
def processes() -> None:
    """List and show processes, with the actions open to the actor."""


@processes.command(
    "list", examples=["standfast processes list", "standfast processes list --mine --as ann --role approver"]
)
@click.option("--workflow", "workflow_id", default="", help="Only those of this workflow.")
@click.option("--status", multiple=True, help="Only those in this status; repeatable.")
@click.option("--key", default="", help="Only the one with this business key.")
@click.option("--started-by", "subject_id", default="", help="Only those that this one started.")
@click.option("--asks-role", help="Only those at a step that asks this role.")
@click.option("--mine", is_flag=True, help="Only those at a step that asks the actor.")
@listed
@tenant_scope
def list_processes(  # noqa: PLR0913 - filters
    place: Target,
    *,
    workflow_id: str,
    status: tuple[str, ...],
    key: str,
    subject_id: str,
    asks_role: str | None,
    mine: bool,
    as_json: bool,
    limit: int,
    after: str,
) -> None:
    """List processes of the tenant and its partition, newest first."""
    with place.calls() as calls:
        page = calls.processes.list(
            status=status,
            workflow_id=workflow_id,
            key=key,
            subject_id=subject_id,
            role=asks_role,
            mine=mine,
            cursor=after or None,
            limit=limit,
        )
    print_list(page.items, LISTING, as_json=as_json, after=None if page.next is None else str(page.next))


@processes.command(
    "expired",
    examples=["standfast processes expired", "standfast processes expired --before 2026-03-01T00:00:00Z --all-tenants"],
)
@click.option("--before", type=Instant(), help="Only deadlines before this instant; now by default.")
@click.option("--all-tenants", is_flag=True, help="Those of all tenants.")
@listed
@tenant_scope
def list_expired(
    place: Target, *, before: datetime | None, all_tenants: bool, as_json: bool, limit: int, after: str
) -> None:
    """List active processes whose deadline has passed, the longest overdue first."""
    with place.calls() as calls:
        whose = ALL_TENANTS if all_tenants else ""
        found = calls.processes.expired(before=before, tenant=whose, after=_last_expired(after), limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: place_of(each.expires_at, each.id))
    print_list(shown, EXPIRED, as_json=as_json, after=more)


def _last_expired(after: str) -> ExpiredProcess | None:
    """Return the position of the last item: only id and time of a process count."""
    if not after:
        return None
    expires_at, name = moment_after(after)
    return ExpiredProcess(
        id=checked_instance(name),
        tenant_id="",
        partition_id="",
        workflow_id="",
        workflow_version="",
        subject_id="",
        business_key="",
        expires_at=expires_at,
    )


@processes.command(
    "show", examples=["standfast processes show 01a1e766-3ad5-7618-92bc-aee7fef0c9eb --as ann --role approver"]
)
@run_argument
@json_option
@tenant_scope
def show_process(place: Target, *, run: str, as_json: bool) -> None:
    """Show a process with the actor's actions: its step, the form, and the events."""
    with place.calls() as calls:
        found = calls.processes.get(run)
    if as_json:
        print_json(found)
    else:
        _print(found)


@processes.command(
    "resume", examples=["standfast processes resume 01a1e766-3ad5-7618-92bc-aee7fef0c9eb --reason 'the bank is back'"]
)
@run_argument
@reason_option
@click.option("--expected-version", type=int, help="The version that you saw; to leave a wait, you have to say it.")
@click.option("--wait", type=Duration(), default="0s", help="How long to wait for automatic steps that follow.")
@json_option
@tenant_scope
def resume_process(
    place: Target, *, run: str, reason: str, expected_version: int | None, wait: timedelta, as_json: bool
) -> None:
    """Resume a suspended process: a failed step is retried; a wait is left if you name the version that you saw."""
    with place.calls() as calls:
        told = calls.processes.resume(run, reason, expected_version=expected_version, patience=wait)
    print_standing(told, as_json=as_json)


def print_standing(told: ProcessInstance, *, as_json: bool) -> None:
    """Print the state of a process after it was advanced."""
    if as_json:
        print_json(told)
        return
    stands = {"run": told.id, "status": told.status, "step": told.current_step, "outcome": told.outcome}
    print_fields({**stands, "version": told.version})


def _print(found: ProcessDescriptor) -> None:
    instance, step = found.instance, found.step
    print_fields(
        {
            "run": instance.id,
            "workflow": f"{instance.workflow_id}-v{instance.workflow_version}",
            "status": instance.status,
            "outcome": instance.outcome,
            "key": instance.business_key,
            "version": instance.version,
            "step": step.id,
            "title": step.title,
            "waits for": ", ".join(found.waiting_for),
            "expires": instance.expires_at,
            "state": instance.state,
            "form": step.form,
        }
    )
    for each in found.choices:
        told = "" if each.is_allowed else f": not allowed, {cell(each.why_not)}"
        click.echo(f"  {'▸' if each.is_allowed else '▹'} {cell(each.event)} ({cell(each.label)}){told}")
