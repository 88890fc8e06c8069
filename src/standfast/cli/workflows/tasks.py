"""`standfast tasks` and `standfast decide`: list and answer human tasks."""

from __future__ import annotations

from typing import Any, Final, Literal

import click
from msgspec.structs import replace

from standfast.app.api.sync import Calls
from standfast.calls.references import checked_step
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verb, verbs
from standfast.cli.options import Json, listed, moment_after, page_of, place_of, reason_option
from standfast.cli.output import Columns, acted_by, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, acted, tenant_scope
from standfast.features.runs.views import HumanTask
from standfast.features.tasks.views import DecidedTask, TaskDetails, TaskOutcome

_ID = "01a1e766-3ad5-7618-92bc-aee7fef0c9eb:3"

LISTING: Columns[HumanTask] = {
    "TASK": lambda each: each.step_id,
    "WORKFLOW": lambda each: each.definition,
    "STEP": lambda each: each.name,
    "STATUS": lambda each: each.status,
    "KEY": lambda each: each.key,
    "ASKS": lambda each: f"role:{each.role}" if each.role else each.claimed_by,
    "SUBJECT": lambda each: each.subject,
    "ASKED": lambda each: each.asked_at,
    "DUE": lambda each: each.due_at,
}


def _checked(_context: click.Context, _parameter: click.Parameter, task: str) -> str:
    """Check a task id before a database or a server is used."""
    checked_step(task)
    return task


task_argument = click.argument("task", metavar="TASK", callback=_checked)
behalf_option = click.option("--on-behalf-of", default="", help="The principal, if the actor is the deputy of several.")


@verbs("tasks")
def tasks() -> None:
    """List and answer human tasks. --as sets the actor."""


@tasks.command("list", examples=["standfast tasks list", "standfast tasks list --mine --as ann --role finance --json"])
@click.option("--mine", "part", flag_value="all", help="Those that ask the actor, in whatever way.")
@click.option("--mine-by-role", "part", flag_value="roles", help="Those that ask a role of the actor.")
@click.option("--delegated", "part", flag_value="delegated", help="Those that are the actor's in the place of others.")
@click.option("--asks-role", help="Only those that ask this role.")
@click.option("--requested-by-me", is_flag=True, help="Only those of runs that the actor wanted.")
@click.option("--definition", default="", help="Only those of this workflow.")
@click.option("--key", default="", help="Only those of the run with this business key.")
@click.option("--overdue", is_flag=True, help="Only those that should have been answered by now.")
@listed
@tenant_scope
def list_tasks(  # noqa: PLR0913 - filters
    place: Target,
    *,
    part: str | None,
    asks_role: str | None,
    requested_by_me: bool,
    definition: str,
    key: str,
    overdue: bool,
    as_json: bool,
    limit: int,
    after: str,
) -> None:
    """List open tasks, oldest first."""
    mine: dict[str | None, bool | Literal["roles", "delegated"]] = {
        "all": True,
        "roles": "roles",
        "delegated": "delegated",
    }
    with place.calls() as calls:
        found = calls.tasks.list(
            mine=mine.get(part, False),
            role=asks_role,
            requested_by_me=requested_by_me,
            definition=definition,
            key=key,
            is_overdue=overdue,
            after=last_task(calls, after),
            limit=limit + 1,
        )
    shown, more = page_of(found, limit, lambda each: place_of(each.asked_at, each.step_id))
    print_list(shown, LISTING, as_json=as_json, after=more)


def last_task(calls: Calls, after: str) -> HumanTask | None:
    """Return the position of the last item.

    The time of an assignment differs by list, so it is part of the position.
    """
    if not after:
        return None
    asked_at, task = moment_after(after)
    return replace(calls.tasks.get(task), asked_at=asked_at)


@tasks.command("decided", examples=["standfast tasks decided --as ann"])
@listed
@tenant_scope
def list_decided(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List the actor's decisions, newest first."""
    columns: Columns[DecidedTask] = {
        "TASK": lambda each: each.task.step_id,
        "WORKFLOW": lambda each: each.task.definition,
        "DECISION": lambda each: each.decision.decision,
        "AT": lambda each: each.decision.decided_at,
        "FOR": lambda each: each.decision.on_behalf_of,
        "COMMENT": lambda each: each.decision.comment,
    }
    with place.calls() as calls:
        found = calls.tasks.decided(after=_last_decided(calls, after), limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: f"{each.decision.sequence}/{each.task.step_id}")
    print_list(shown, columns, as_json=as_json, after=more)


def _last_decided(calls: Calls, after: str) -> DecidedTask | None:
    if not after:
        return None
    number, _, name = after.partition("/")
    task = calls.tasks.get(name)
    for each in task.decisions:
        if str(each.sequence) == number:
            return DecidedTask(task=task, decision=each)
    raise click.BadParameter(f"{after!r} is no place in this list; take it from the page before", param_hint="--after")


@tasks.command("counts", examples=["standfast tasks counts --as ann --role finance"])
@json_option
@tenant_scope
def counts(place: Target, *, as_json: bool) -> None:
    """Count the actor's open tasks."""
    with place.calls() as calls:
        found = calls.tasks.counts()
    if as_json:
        print_json(found)
    else:
        print_fields({"own": str(found.own), "by role": found.by_role, "overdue": str(found.overdue)})


@tasks.command("show", examples=[f"standfast tasks show {_ID}"])
@task_argument
@json_option
@tenant_scope
def show_task(place: Target, *, task: str, as_json: bool) -> None:
    """Show a task with its assignees, decisions, comments and form."""
    with place.calls() as calls:
        found = calls.tasks.get(task)
    if as_json:
        print_json(found)
        return
    print_fields(
        {
            "task": found.step_id,
            "workflow": found.definition,
            "key": found.key,
            "document version": found.document_version,
            "step": found.name,
            "subject": found.subject,
            "stage": found.stage,
            "status": found.status,
            "outcomes": ", ".join(found.outcomes),
            "asks": ", ".join(f"role:{each.name}" if each.kind == "role" else each.name for each in found.people),
            "agreement": found.agreement,
            "claimed by": found.claimed_by,
            "requester": found.requester,
            "asked": found.asked_at,
            "due": found.due_at,
            "decision": found.decision,
            "decided by": _decided_by(found),
            "data": found.data,
            "form": found.form,
        }
    )
    for each in found.decisions:
        click.echo(
            f"  {acted_by(each.decided_by, each.on_behalf_of)} decided {each.decision}{' (withdrawn)' if each.is_withdrawn else ''}: {each.comment}"
        )
    for comment in found.comments:
        click.echo(
            f"  {acted_by(comment.actor, comment.on_behalf_of)} {'asks' if comment.is_question else 'says'}: {comment.text}"
        )


def _decided_by(found: TaskDetails) -> str:
    """Return the last decider of a task, and the principal."""
    last = next((each for each in reversed(found.decisions) if each.decided_by == found.decided_by), None)
    return acted_by(found.decided_by, "" if last is None else last.on_behalf_of)


@verb("decide", f"standfast decide {_ID} approved --as ann --comment fine")
@task_argument
@click.argument("decision")
@click.option("--comment", default="", help="A comment.")
@click.option("--data", type=Json(), help="What the form asks for: JSON, @file, or -.")
@click.option(
    "--document-version", default="", help="The version of the document that was seen; an approval counts for that one."
)
@click.option(
    "--stage", default="", help="The stage of the approval chain that was seen; the decision counts for that one."
)
@behalf_option
@tenant_scope
def decide(place: Target, /, *, task: str, decision: str, **given: Any) -> None:
    """Decide a task by one of its outcomes, as the actor in --as.

    The words approve, reject and abstain are always understood, whatever the definition's names. The approval of a
    document names the version that you have read: `standfast tasks show TASK` prints its number, `standfast docs show
    TYPE ID --version N` its content.
    """
    with place.calls() as calls:
        words = {"approve": calls.tasks.approve, "reject": calls.tasks.reject, "abstain": calls.tasks.abstain}
        if decision in words:
            words[decision](task, **given)
        else:
            calls.tasks.decide(task, decision, **given)
    click.echo(f"{task} is answered: {decision}")


@tasks.command("claim", examples=[f"standfast tasks claim {_ID} --as ann"])
@task_argument
@behalf_option
@acted
def claim(place: Target, *, task: str, on_behalf_of: str) -> None:
    """Claim a task: no other user can decide it then."""
    with place.calls() as calls:
        calls.tasks.claim(task, on_behalf_of=on_behalf_of)
    click.echo(f"{task} is claimed")


@tasks.command("release", examples=[f"standfast tasks release {_ID} --as ann"])
@task_argument
@behalf_option
@acted
def release(place: Target, *, task: str, on_behalf_of: str) -> None:
    """Release a claimed task."""
    with place.calls() as calls:
        calls.tasks.release(task, on_behalf_of=on_behalf_of)
    click.echo(f"{task} is released")


@tasks.command("delegate", examples=[f"standfast tasks delegate {_ID} bob --as ann --reason holiday"])
@task_argument
@click.argument("to")
@reason_option
@behalf_option
@tenant_scope
def delegate(place: Target, *, task: str, to: str, reason: str, on_behalf_of: str) -> None:
    """Delegate your task to another user."""
    with place.calls() as calls:
        calls.tasks.delegate(task, to, reason=reason, on_behalf_of=on_behalf_of)
    click.echo(f"{task} is delegated to {to}")


@tasks.command("reassign", examples=[f"standfast tasks reassign {_ID} role:finance --who ann"])
@task_argument
@click.argument("to")
@click.option("--who", default="", help="The assignee to replace, if there are several.")
@reason_option
@tenant_scope
def reassign(place: Target, *, task: str, to: str, who: str, reason: str) -> None:
    """Reassign a task to another user, or to role:NAME."""
    with place.calls() as calls:
        calls.tasks.reassign(task, to, who=who, reason=reason)
    click.echo(f"{task} asks {to} now")


@tasks.command("comment", examples=[f"standfast tasks comment {_ID} 'the invoice is attached' --as ann"])
@task_argument
@click.argument("text")
@click.option("--ask", is_flag=True, help="It is a question back.")
@behalf_option
@tenant_scope
def comment_on(place: Target, *, task: str, text: str, ask: bool, on_behalf_of: str) -> None:
    """Comment on a task, or ask a question about it."""
    with place.calls() as calls:
        (calls.tasks.ask if ask else calls.tasks.comment)(task, text, on_behalf_of=on_behalf_of)
    click.echo(f"it is noted at {task}")


@tasks.command("escalate", examples=[f"standfast tasks escalate {_ID} --reason urgent"])
@task_argument
@reason_option
@behalf_option
@tenant_scope
def escalate(place: Target, *, task: str, reason: str, on_behalf_of: str) -> None:
    """Escalate a task now."""
    with place.calls() as calls:
        calls.tasks.escalate(task, reason, on_behalf_of=on_behalf_of)
    click.echo(f"{task} is escalated")


@tasks.command("withdraw", examples=[f"standfast tasks withdraw {_ID} --reason 'not needed'"])
@task_argument
@reason_option
@tenant_scope
def withdraw(place: Target, *, task: str, reason: str) -> None:
    """Withdraw a task: it needs no decision any longer."""
    with place.calls() as calls:
        calls.tasks.withdraw(task, reason)
    click.echo(f"{task} is withdrawn")


__all__ = ["tasks"]

_DECISION_EXAMPLE: Final = "01a1e766-3ad5-7618-92bc-aee7fef0c9eb:2"
OUTCOMES: Columns[TaskOutcome] = {
    "TASK": lambda each: each.task,
    "STATUS": lambda each: each.status,
    "CODE": lambda each: each.code,
    "DETAIL": lambda each: each.detail,
}


@tasks.command(
    "decide",
    examples=[f"standfast tasks decide confirmed {_DECISION_EXAMPLE} {_DECISION_EXAMPLE}=3 --as ann --comment fine"],
)
@click.argument("decision")
@click.argument("named", nargs=-1, required=True, metavar="TASK[=DOCUMENT-VERSION]...")
@click.option("--comment", default="", help="A comment.")
@click.option("--stage", default="", help="The stage of an approval chain that all of them were seen at.")
@behalf_option
@json_option
@tenant_scope
def decide_many(
    place: Target, *, decision: str, named: tuple[str, ...], comment: str, stage: str, on_behalf_of: str, as_json: bool
) -> None:
    """Decide many tasks by one outcome, and print the result of each; a refused one does not affect the others.

    Exit code 0: all are decided. 1: one was refused.
    """
    with place.calls() as calls:
        found = calls.tasks.decide_many(
            [(task, version, stage) for task, _, version in (each.partition("=") for each in named)],
            decision,
            comment=comment,
            on_behalf_of=on_behalf_of,
        )
    print_list(found, OUTCOMES, as_json=as_json)
    end(Exit.NO if any(each.status == "refused" for each in found) else Exit.DONE)


@tasks.command(
    "ask-also", examples=[f"standfast tasks ask-also {_DECISION_EXAMPLE} role:finance --reason 'it is about money'"]
)
@task_argument
@click.argument("person")
@click.option("--weight", type=click.IntRange(1), default=1, help="How much their word counts.")
@reason_option
@tenant_scope
def ask_also(place: Target, *, task: str, person: str, weight: int, reason: str) -> None:
    """Add an approver to a task: a user, or role:NAME."""
    with place.calls() as calls:
        calls.tasks.add_approver(task, person, weight=weight, reason=reason)
    click.echo(f"{task} asks {person} too")


@tasks.command(
    "withdraw-decision",
    examples=[f"standfast tasks withdraw-decision {_DECISION_EXAMPLE} --as ann --reason 'too early'"],
)
@task_argument
@reason_option
@behalf_option
@tenant_scope
def withdraw_decision(place: Target, *, task: str, reason: str, on_behalf_of: str) -> None:
    """Withdraw your decision, while the task is open."""
    with place.calls() as calls:
        calls.tasks.withdraw_decision(task, reason, on_behalf_of=on_behalf_of)
    click.echo(f"the decision about {task} is taken back")
