"""`standfast tasks decide`, `ask-also` and `withdraw-decision`: many questions in one word, and who else decides them."""

from __future__ import annotations

from typing import Final

import click

from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end
from standfast.cli.options import reason_option
from standfast.cli.output import Columns, json_option, print_list
from standfast.cli.target import Target, tenant_scope
from standfast.cli.workflows.tasks import behalf_option, task_argument, tasks
from standfast.features.tasks.views import TaskOutcome

__all__ = ["tasks"]

_ID: Final = "01a1e766-3ad5-7618-92bc-aee7fef0c9eb:2"
OUTCOMES: Columns[TaskOutcome] = {
    "TASK": lambda each: each.task,
    "STATUS": lambda each: each.status,
    "CODE": lambda each: each.code,
    "DETAIL": lambda each: each.detail,
}


@tasks.command("decide", examples=[f"standfast tasks decide confirmed {_ID} {_ID}=3 --as ann --comment fine"])
@click.argument("decision")
@click.argument("named", nargs=-1, required=True, metavar="TASK[=DOCUMENT-VERSION]...")
@click.option("--comment", default="", help="A word for those who read it.")
@behalf_option
@json_option
@tenant_scope
def decide_many(
    place: Target, *, decision: str, named: tuple[str, ...], comment: str, on_behalf_of: str, as_json: bool
) -> None:
    """Answer many questions by one of their outcomes, and tell what became of each; one that is refused keeps no other from being decided.

    Exit code 0: all are decided. 1: one was refused.
    """
    with place.calls() as calls:
        found = calls.tasks.decide_many(
            [(task, version) for task, _, version in (each.partition("=") for each in named)],
            decision,
            comment=comment,
            on_behalf_of=on_behalf_of,
        )
    print_list(found, OUTCOMES, as_json=as_json)
    end(Exit.NO if any(each.status == "refused" for each in found) else Exit.DONE)


@tasks.command("ask-also", examples=[f"standfast tasks ask-also {_ID} role:finance --reason 'it is about money'"])
@task_argument
@click.argument("person")
@click.option("--weight", type=click.IntRange(1), default=1, help="How much their word counts.")
@reason_option
@tenant_scope
def ask_also(place: Target, *, task: str, person: str, weight: int, reason: str) -> None:
    """Ask somebody else as well: a user, or role:NAME."""
    with place.calls() as calls:
        calls.tasks.add_approver(task, person, weight=weight, reason=reason)
    click.echo(f"{task} asks {person} too")


@tasks.command("withdraw-decision", examples=[f"standfast tasks withdraw-decision {_ID} --as ann --reason 'too early'"])
@task_argument
@reason_option
@behalf_option
@tenant_scope
def withdraw_decision(place: Target, *, task: str, reason: str, on_behalf_of: str) -> None:
    """Take one's decision back, as long as the question is open."""
    with place.calls() as calls:
        calls.tasks.withdraw_decision(task, reason, on_behalf_of=on_behalf_of)
    click.echo(f"the decision about {task} is taken back")
