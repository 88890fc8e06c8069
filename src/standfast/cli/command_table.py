"""The table of commands: name, module and one-line help.

Command modules import the whole engine. With this table `--help`, `--version` and shell completion need none of them,
and a command only its own. A test compares the texts with the help of the commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Entry(NamedTuple):
    """A command or group, which is imported on use."""

    name: str
    home: str
    """The module below `cli`, and the attribute in it."""
    told: str
    """The first sentence of its help."""


SECTIONS: Final[Mapping[str, tuple[Entry, ...]]] = {
    "Getting started": (
        Entry(
            "init",
            "develop.init:init",
            "Create a project in FOLDER that runs: sample workflows, tests and a configuration.",
        ),
        Entry(
            "dev",
            "develop.init:dev",
            "Run server and worker in one process, for development: no key is needed, and only this machine can connect.",
        ),
    ),
    "Writing workflows": (
        Entry(
            "validate",
            "workflows.validate:validate",
            "Validate each FILE, and report every mistake with line, column and rule.",
        ),
        Entry("graph", "workflows.validate:graph", "Draw a workflow of FILE."),
        Entry(
            "dry-run",
            "documents.dry_run:dry_run",
            "Simulate a run of a published workflow, or of one in FILE, which needs no database.",
        ),
        Entry(
            "diff",
            "workflows.definitions:diff",
            "Compare a workflow of FILE with its newest published version, or with VERSION.",
        ),
        Entry(
            "publish",
            "workflows.definitions:publish",
            "Publish the workflows of FILE for all tenants, or for the one in --tenant.",
        ),
        Entry("definitions", "workflows.definitions:definitions", "List, show and archive published workflows."),
        Entry(
            "template",
            "develop.templates:template",
            "List, show, run and copy the process templates of the package.",
        ),
        Entry("expr", "develop.expressions:expr", "Evaluate EXPRESSION and explain the result."),
    ),
    "Runs": (
        Entry("start", "workflows.runs:start", "Start a run of WORKFLOW, and print its id once it is stored."),
        Entry(
            "list",
            "workflows.runs:list_runs",
            "List runs, newest first by default; paused runs by the time of their pause.",
        ),
        Entry("show", "workflows.runs:show", "Show a run: its status, and its graph with the status of each step."),
        Entry("watch", "workflows.runs:watch", "Print the events of a run as they happen, until it has ended."),
        Entry("history", "workflows.runs:history", "List the events of a run, in order."),
        Entry("why", "workflows.runs:why", "Explain why a run does not progress, and list the remedies."),
    ),
    "Controlling runs": (
        Entry(
            "cancel",
            "workflows.control:cancel",
            "Cancel a run and run its compensations, which takes a worker; print its final status.",
        ),
        Entry("abort", "workflows.control:abort", "Abort a run immediately, without compensations."),
        Entry(
            "pause",
            "workflows.control:pause",
            "Pause a run: running handlers finish, and later steps are held.",
        ),
        Entry("resume", "workflows.control:resume", "Resume a run that is paused or waits for an operator."),
        Entry(
            "resume-options",
            "workflows.control:resume_options",
            "List the actions that would resume a run, with the required rights.",
        ),
        Entry(
            "request-resume",
            "workflows.control:request_resume",
            "Request that a worker resumes a run, at its next check of requests.",
        ),
        Entry(
            "resume-requests",
            "workflows.control:resume_requests",
            "List all resume requests of a run with their outcomes, refused ones included.",
        ),
        Entry(
            "signal",
            "workflows.control:signal",
            "Send a signal to a run; a step that waits for it continues.",
        ),
    ),
    "Repairing runs": (
        Entry(
            "retry",
            "workflows.repair:retry",
            "Retry a step now that failed or waits for its next attempt.",
        ),
        Entry("skip", "workflows.repair:skip", "Skip a step that has not ended, without its work."),
        Entry("complete", "workflows.repair:complete", "Complete a step whose work was done by other means."),
        Entry(
            "requeue",
            "workflows.dead_letters:requeue",
            "Requeue a dead letter; same as `standfast dlq requeue`.",
        ),
        Entry(
            "reenqueue",
            "workflows.repair:reenqueue",
            "Take a step from a lost worker, and queue it again.",
        ),
        Entry(
            "change-data",
            "workflows.repair:change_data",
            "Apply a JSON merge patch to a run's data.",
        ),
        Entry(
            "cancel-branch",
            "workflows.repair:cancel_branch",
            "Cancel one of several branches, by its TOKEN in `standfast show --json`; the others continue.",
        ),
        Entry(
            "move-back",
            "workflows.repair:move_back",
            "Roll a run back to its last save point, or to the one given, and continue from there.",
        ),
        Entry(
            "fail", "workflows.repair:fail", "Fail a run, with its compensations, as if a step had failed permanently."
        ),
        Entry(
            "fork",
            "workflows.repair:fork",
            "Start a new run from the state of this one after event AT of its history; this one is unchanged.",
        ),
    ),
    "Many runs": (
        Entry("schedules", "workflows.schedules:schedules", "Start workflows at given times."),
        Entry("batch", "workflows.batches:batch", "Apply one operation to many runs, in the background."),
        Entry(
            "report",
            "admin.reports:report",
            "Report durations, waiting times, decisions and retries of a workflow's runs or a type's documents.",
        ),
    ),
    "Documents": (
        Entry(
            "docs",
            "documents.documents:docs",
            "Create, edit, submit, amend and inspect documents.",
        ),
        Entry(
            "contracts",
            "documents.contracts:contracts",
            "Publish and compare contracts: document types with lifecycle and slots.",
        ),
        Entry(
            "bodies",
            "documents.suspension:bodies",
            "Draft, publish and compare the steps in the slots of documents.",
        ),
        Entry(
            "charters",
            "documents.settings:charters",
            "Show and publish the organisation's document rules and settings.",
        ),
    ),
    "People": (
        Entry("tasks", "workflows.tasks:tasks", "List and answer human tasks."),
        Entry("decide", "workflows.tasks:decide", "Decide a task by one of its outcomes, as the actor in --as."),
        Entry(
            "processes", "workflows.processes:processes", "List and show processes, with the actions open to the actor."
        ),
        Entry(
            "advance",
            "workflows.control:advance",
            "Advance a process from its current step by an event, with the data of its form.",
        ),
        Entry("directory", "admin.directory:directory", "Manage users, roles, delegations and absences."),
        Entry("chains", "admin.directory:chains", "Publish and show approval chains."),
        Entry("notifications", "admin.access:notifications", "List and mark in-app notifications."),
    ),
    "The engine": (
        Entry(
            "worker",
            "admin.worker:worker",
            "Run handlers, timers and projections until SIGTERM or Ctrl-C.",
        ),
        Entry("server", "admin.serve:server", "Serve the HTTP API until SIGTERM or Ctrl-C."),
        Entry(
            "keys",
            "admin.access:keys",
            "Create, list, rotate and revoke API keys.",
        ),
        Entry("sessions", "admin.access:sessions", "List and end browser sessions."),
        Entry(
            "refusals",
            "admin.access:list_refusals",
            "List requests that were denied because of the caller's identity or rights, newest first.",
        ),
        Entry(
            "audit",
            "admin.access:show_audit",
            "List who changed what and why, or the calls on an INSTANCE.",
        ),
        Entry(
            "migrate",
            "admin.database:migrate",
            "Migrate the database at URL to the schema of this version; does nothing if it is current.",
        ),
        Entry(
            "copy",
            "admin.database:copy",
            "Copy the database at SOURCE into the empty one at TARGET, SQLite or Postgres, and continue there.",
        ),
        Entry(
            "drop",
            "admin.database:drop",
            "Drop all tables of Standfast in the database at URL, with their data; other tables are not touched.",
        ),
        Entry(
            "config",
            "admin.config:config",
            "Show the configuration and the source of each value: flag, variable, file or default.",
        ),
        Entry(
            "doctor",
            "admin.doctor:doctor",
            "Check the health of a database: workers, backlog, dead letters, stuck runs; or the invariants of documents.",
        ),
        Entry(
            "verify",
            "admin.doctor:verify",
            "Verify a run: fold its history again and compare it with the stored state.",
        ),
        Entry("seals", "admin.reports:seals", "Create and verify seals of histories."),
        Entry("dlq", "workflows.dead_letters:dlq", "Inspect, requeue and discard dead letters."),
        Entry("pauses", "workflows.pauses:pauses", "Pause a workflow, a step or a tenant, and list pauses."),
        Entry("events", "workflows.events:events", "Publish events to waiting subscribers."),
        Entry("maintenance", "admin.maintenance:maintenance", "Hold all work in all processes, and release it."),
        Entry("projections", "admin.maintenance:projections", "Show the progress of read models."),
        Entry("inbox", "admin.maintenance:inbox", "Show accepted commands that wait."),
        Entry("instances", "admin.maintenance:instances", "List and delete instances of any kind, deciders included."),
        Entry(
            "bench",
            "admin.bench:bench",
            "Measure how fast runs complete: many in parallel, then one at a time.",
        ),
        Entry(
            "completion",
            "admin.completion:completion",
            "Print the shell completion script of SHELL; load it with `eval` in ~/.bashrc or ~/.zshrc.",
        ),
    ),
}
"""The commands by topic, in the order of the help."""
