"""The `holdfast` command. Commands live in modules by their subject and are added here."""

from __future__ import annotations

import click

from holdfast.cli.access import list_refusals, notifications, sessions
from holdfast.cli.authoring import graph, validate
from holdfast.cli.batches import batch
from holdfast.cli.beginning import dev, init
from holdfast.cli.benching import bench
from holdfast.cli.chains import chains
from holdfast.cli.charters import charters
from holdfast.cli.completing import completion
from holdfast.cli.config import config
from holdfast.cli.contracts import contracts
from holdfast.cli.dead_letters import dlq, requeue
from holdfast.cli.deciding import tasks
from holdfast.cli.directory import directory
from holdfast.cli.doctor import doctor, verify
from holdfast.cli.documents import docs
from holdfast.cli.drop import drop
from holdfast.cli.events import events
from holdfast.cli.expr import expr
from holdfast.cli.frame import Root
from holdfast.cli.keys import keys
from holdfast.cli.mending import (
    cancel_branch,
    change_data,
    complete,
    fail,
    fork,
    move_back,
    reenqueue,
    resume_options,
)
from holdfast.cli.migrate import migrate
from holdfast.cli.pauses import pauses
from holdfast.cli.processes import processes
from holdfast.cli.publishing import definitions, diff, publish
from holdfast.cli.repairs import abort, advance, cancel, pause, resume, retry, signal, skip
from holdfast.cli.reports import report
from holdfast.cli.runs import history, list_runs, show, start, watch, why
from holdfast.cli.schedules import schedules
from holdfast.cli.seals import seals
from holdfast.cli.serving import server
from holdfast.cli.suppositions import dry_run
from holdfast.cli.suspending import bodies
from holdfast.cli.tasks import decide
from holdfast.cli.templates import template
from holdfast.cli.upkeep import inbox, instances, maintenance, projections
from holdfast.cli.worker import worker

__all__ = ["main"]


@click.group("holdfast", cls=Root)
@click.version_option(package_name="holdfast", prog_name="holdfast", message="%(prog)s %(version)s")
def main() -> None:
    """Durable workflows: write them, run them, look at them, ask them why.

    Where the database is, and for whom commands are done, is said by flags, by HOLDFAST_… variables, or in holdfast.toml.
    """


main.add_section("Beginning", init, dev)
main.add_section("Writing workflows", validate, graph, dry_run, diff, publish, definitions, template, expr)
main.add_section("Runs", start, list_runs, show, watch, history, why)
main.add_section("Stopping runs", cancel, abort, pause, resume, resume_options, signal)
main.add_section(
    "Mending runs", retry, skip, complete, requeue, reenqueue, change_data, cancel_branch, move_back, fail, fork
)
main.add_section("Many runs", schedules, batch, report)
main.add_section("Documents", docs, contracts, bodies, charters)
main.add_section("People", tasks, decide, processes, advance, directory, chains, notifications)
main.add_section(
    "The engine",
    worker,
    server,
    keys,
    sessions,
    list_refusals,
    migrate,
    drop,
    config,
    doctor,
    verify,
    seals,
    dlq,
    pauses,
    events,
    maintenance,
    projections,
    inbox,
    instances,
    bench,
    completion,
)
