"""Every command: by which name, where it is written, and what it does in a sentence.

Modules of commands bring the whole engine along. With this table `--help`, `--version` and the completion of a shell need none of them, and a
command only its own. A test compares the sentences with those of the commands themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Entry(NamedTuple):
    """A command, or a group of them, that is loaded when it is asked for."""

    name: str
    home: str
    """The module of the command line that has it, and what it is called there."""
    told: str
    """The first sentence of its help."""


SECTIONS: Final[Mapping[str, tuple[Entry, ...]]] = {
    "Beginning": (
        Entry(
            "init",
            "develop.init:init",
            "Write a project into FOLDER that runs: workflows of several kinds, tests of them, and what commands are told there.",
        ),
        Entry(
            "dev",
            "develop.init:dev",
            "Server and worker in one process, to try things: no key is needed, and only this machine can reach it.",
        ),
    ),
    "Writing workflows": (
        Entry(
            "validate",
            "workflows.validate:validate",
            "Tell everything that is wrong with each FILE, with line, column and rule.",
        ),
        Entry("graph", "workflows.validate:graph", "Draw a workflow of FILE."),
        Entry(
            "dry-run",
            "documents.dry_run:dry_run",
            "Which way a run would take: of a published workflow, or of one in FILE, which takes no database.",
        ),
        Entry(
            "diff",
            "workflows.definitions:diff",
            "Compare a workflow of FILE with a published VERSION of it, the newest one if none is named.",
        ),
        Entry(
            "publish",
            "workflows.definitions:publish",
            "Publish the workflows of FILE: for all tenants, or for the one that --tenant names.",
        ),
        Entry("definitions", "workflows.definitions:definitions", "Workflows as they were published."),
        Entry(
            "template",
            "develop.templates:template",
            "Processes that come with Standfast: order approval, disputes, onboarding, settlement, expenses.",
        ),
        Entry("expr", "develop.expressions:expr", "Evaluate EXPRESSION and explain the result."),
    ),
    "Runs": (
        Entry("start", "workflows.runs:start", "Start a run of WORKFLOW; its id is printed when it is stored."),
        Entry(
            "list",
            "workflows.runs:list_runs",
            "Runs, newest first unless it is said otherwise; of paused ones, those that were paused last.",
        ),
        Entry("show", "workflows.runs:show", "A run: how it stands, and its graph with what became of each step."),
        Entry("watch", "workflows.runs:watch", "Print what happens to a run, as it happens, until it has ended."),
        Entry("history", "workflows.runs:history", "What happened to a run, in order."),
        Entry("why", "workflows.runs:why", "Why a run does not move, and what could be done about it."),
    ),
    "Stopping runs": (
        Entry(
            "cancel",
            "workflows.control:cancel",
            "Stop a run and undo what it did, which takes a worker; how it ended is printed.",
        ),
        Entry("abort", "workflows.control:abort", "End a run at once; nothing is undone."),
        Entry(
            "pause",
            "workflows.control:pause",
            "Have a run wait: handlers that are running finish, and what follows from them is held.",
        ),
        Entry("resume", "workflows.control:resume", "Let a run go on that is paused, or waits for an operator."),
        Entry("resume-options", "workflows.control:resume_options", "What would bring a run on, and who may do that."),
        Entry(
            "request-resume",
            "workflows.control:request_resume",
            "Write down that a run is to go on, and leave that to the worker that looks for such requests now and then.",
        ),
        Entry(
            "resume-requests",
            "workflows.control:resume_requests",
            "All requests to let a run go on, with what became of each; those that were refused, too.",
        ),
        Entry(
            "signal",
            "workflows.control:signal",
            "Tell a run that something happened; a step that waits for it goes on.",
        ),
    ),
    "Mending runs": (
        Entry(
            "retry",
            "workflows.repair:retry",
            "Call the handler of a step now, which gave up or waits for its next call.",
        ),
        Entry("skip", "workflows.repair:skip", "Go on behind a step that has not ended, without its work."),
        Entry("complete", "workflows.repair:complete", "End a step whose work was done by other means."),
        Entry(
            "requeue",
            "workflows.dead_letters:requeue",
            "The same as `standfast dlq requeue`: put a dead letter back to work.",
        ),
        Entry(
            "reenqueue",
            "workflows.repair:reenqueue",
            "Take a step from a worker that is gone, and have another one call it.",
        ),
        Entry(
            "change-data",
            "workflows.repair:change_data",
            "Lay PATCH over the data of a run: objects name by name, null takes a name away.",
        ),
        Entry(
            "cancel-branch",
            "workflows.repair:cancel_branch",
            "End one of several branches, by its TOKEN, as `standfast show --json` names it; the others go on without it.",
        ),
        Entry(
            "move-back",
            "workflows.repair:move_back",
            "Undo what was done behind a save point, the last one if none is named, and go on from there.",
        ),
        Entry(
            "fail", "workflows.repair:fail", "Have a run fail as if a step had failed for good: what it did is undone."
        ),
        Entry(
            "fork",
            "workflows.repair:fork",
            "Start a new run where this one was after event AT of its history; this one stays as it is.",
        ),
    ),
    "Many runs": (
        Entry("schedules", "workflows.schedules:schedules", "What starts workflows at given times."),
        Entry("batch", "workflows.batches:batch", "One thing done to many runs; accepted is not done."),
        Entry(
            "report",
            "admin.reports:report",
            "How long runs of a workflow, or documents of a type, took; where they waited, who decided, what was done twice.",
        ),
    ),
    "Documents": (
        Entry(
            "docs",
            "documents.documents:docs",
            "Documents: create, edit, submit and amend them, and see what they were.",
        ),
        Entry(
            "contracts",
            "documents.contracts:contracts",
            "Contracts: what a type of documents is, its life, and where organisations may add steps.",
        ),
        Entry(
            "bodies",
            "documents.suspension:bodies",
            "Bodies: the steps that an organisation puts into the slots of its documents.",
        ),
        Entry(
            "charters",
            "documents.settings:charters",
            "What the organisation says of its documents: `rules:TYPE`, and `settings`.",
        ),
    ),
    "People": (
        Entry("tasks", "workflows.tasks:tasks", "Questions that wait for people."),
        Entry("decide", "workflows.tasks:decide", "Answer a question by one of its outcomes, as whoever --as names."),
        Entry("processes", "workflows.processes:processes", "Processes as those see them who lead them on."),
        Entry(
            "advance",
            "workflows.control:advance",
            "Leave the current step of a process by an event, with what its form asks for.",
        ),
        Entry(
            "directory", "admin.directory:directory", "People: who there is, what they may do, who stands in for whom."
        ),
        Entry("chains", "admin.directory:chains", "Approval chains: stages that are asked one after the other."),
        Entry("notifications", "admin.access:notifications", "What people were told in the application."),
    ),
    "The engine": (
        Entry(
            "worker",
            "admin.worker:worker",
            "Work: run handlers, timers and projections until the process is asked to end.",
        ),
        Entry("server", "admin.serve:server", "Serve the HTTP API until the process is asked to end."),
        Entry(
            "keys",
            "admin.access:keys",
            "API keys of the tenant: who may come to a server, as whom, and what they may do.",
        ),
        Entry("sessions", "admin.access:sessions", "Sessions of browsers."),
        Entry(
            "refusals", "admin.access:list_refusals", "Requests that were refused because of who asked, newest first."
        ),
        Entry(
            "audit",
            "admin.access:show_audit",
            "List who changed what and why, or what was done to an INSTANCE.",
        ),
        Entry(
            "migrate",
            "admin.database:migrate",
            "Bring the database at URL to the schema of this code; does nothing if it is there already.",
        ),
        Entry(
            "copy",
            "admin.database:copy",
            "Copy everything of the database at SOURCE into the empty one at TARGET, SQLite or Postgres, and go on there.",
        ),
        Entry(
            "drop",
            "admin.database:drop",
            "Take away all tables of Standfast in the database at URL, with everything in them; other tables there are not touched.",
        ),
        Entry(
            "config",
            "admin.config:config",
            "Every value that a command is told, and where it came from: a flag, a variable, the file, or nobody.",
        ),
        Entry(
            "doctor",
            "admin.doctor:doctor",
            "Look at a database as a whole: who works, what waits, what gave up, what is held back; or at the rules of all documents.",
        ),
        Entry(
            "verify", "admin.doctor:verify", "Fold the whole history of a run again and compare it with what is stored."
        ),
        Entry("seals", "admin.reports:seals", "Seals: each says how far a history went, and what it was until then."),
        Entry("dlq", "workflows.dead_letters:dlq", "Dead letters: what gave up and waits for an operator."),
        Entry("pauses", "workflows.pauses:pauses", "What is held back, by whom and why."),
        Entry("events", "workflows.events:events", "Events that are published to whoever waits for them."),
        Entry(
            "maintenance", "admin.maintenance:maintenance", "Hold all work back, in all processes, and let it go on."
        ),
        Entry("projections", "admin.maintenance:projections", "Read models: how far each has read."),
        Entry("inbox", "admin.maintenance:inbox", "Commands that were accepted and wait for their turn."),
        Entry("instances", "admin.maintenance:instances", "Instances of any kind, those of deciders too."),
        Entry(
            "bench",
            "admin.bench:bench",
            "Run sagas whose steps do nothing, all at once and then one at a time, and say how long that took.",
        ),
        Entry(
            "completion",
            "admin.completion:completion",
            "Print what SHELL is to read, so that it completes commands and options; in ~/.bashrc or ~/.zshrc by `eval`.",
        ),
    ),
}
"""The commands by what they are about, in the order in which one meets them."""
