"""Next steps for errors on the command line, where the error's own text has none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from standfast import errors

_LISTS: Final[Mapping[str, str]] = {
    "instance": "list",
    "workflow instance": "list",
    "process instance": "list",
    "workflow": "definitions list",
    "definition": "definitions list",
    "dead letter": "dlq list",
    "pause": "pauses list",
    "API key": "keys list",
    "person": "directory list",
    "approval chain": "chains list",
    "event": "events list",
    "event of a history": "history RUN",
    "batch": "batch list",
    "schedule": "schedules list",
    "session": "sessions list",
    "notification": "notifications list",
    "projection": "projections list",
    "message": "inbox list",
    "finished instance": "instances list",
    "version of a workflow": "definitions list",
    "step": "show RUN",
    "task": "tasks list",
    "contract": "contracts list",
    "body": "bodies list",
    "draft": "bodies drafts",
    "document": "docs list TYPE",
    "document type": "contracts list",
}
"""The command that lists instances of a kind."""

_COMMANDS: Final = (
    (re.compile(r"\bstart_worker\(\)"), "`standfast worker`"),
    (re.compile(r"\bprocesses\.advance\b"), "`standfast advance`"),
    (re.compile(r"\bprocesses\.resume\b"), "`standfast processes resume`"),
    (re.compile(r"\btasks\.decide\b"), "`standfast decide`"),
    (re.compile(r"\bsignal\('([\w.-]+)'\)"), r"`standfast signal RUN \1`"),
    (re.compile(r"\bpublish\('([\w.-]+)'\)"), r"`standfast events publish \1`"),
    (re.compile(r"\bpublish\('([\w.-]+)', '([\w.-]+)'\)"), r"`standfast events publish \1 \2`"),
    (re.compile(r"\badmin\.resume_processing\(\)"), "`standfast maintenance end`"),
    (re.compile(r"\bpauses\.resume\b"), "`standfast pauses resume`"),
    (re.compile(r"\bdead_letters\.(?:requeue|retry_compensation)\((\d+)\)"), r"`standfast dlq requeue \1`"),
    (re.compile(r"\bdead_letters\.discard\((\d+)\)"), r"`standfast dlq discard \1`"),
    (re.compile(r"\bretry_compensation of its( own)? dead letter"), r"`standfast dlq requeue` of its\1 dead letter"),
    (re.compile(r"\bsay by `forms` what is filled in"), "say by --form STEP={json} what is filled in"),
    (re.compile(r"\binbox\.bury\((\d+)\)"), r"`standfast inbox bury \1`"),
    (re.compile(r"\bask why\(\) of that run\b"), "`standfast why` tells more of that run"),
    (re.compile(r"\b(retry|skip)(?= (?:calls it|goes on) )"), r"`standfast \1 RUN STEP`"),
    (
        re.compile(
            r"`engine\.(directory|chains|charters|definitions|pauses|tasks|keys|sessions)\.(put|list|publish|get)`"
        ),
        r"`standfast \1 \2`",
    ),
    (re.compile(r"`(bodies|contracts)\.(versions|drafts|publish|diff)`"), r"`standfast \1 \2`"),
    (
        re.compile(r"\bgive a run, its id, or the instance itself"),
        "`standfast list` shows those of runs, and `standfast list --key KEY` that of a business key",
    ),
    (
        re.compile(r"\btake it from `steps` or `tasks`, or give the step itself"),
        "`standfast tasks list` shows those of questions",
    ),
    (re.compile(r"\bregister it first; known here are: none"), "nothing of this name is published"),
    (re.compile(r"`bodies\.dry_run`"), "`standfast bodies dry-run`"),
    (re.compile(r"`run\.why\(\)`"), "`standfast why RUN`"),
    (re.compile(r"`resume_options`"), "`standfast resume-options RUN`"),
    (re.compile(r"`pauses\.pause`"), "`standfast pauses pause`"),
    (re.compile(r"`on_behalf_of`"), "--on-behalf-of"),
    (re.compile(r"`dead_letters\.groups`"), "`standfast dlq groups`"),
    (re.compile(r"`engine\.directory\.(?:delegations|absences)`"), "`standfast directory show`"),
)
"""Calls of the engine that its sentences name, and the commands that do the same."""
_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)?\+00:00")


_KINDS: Final[Mapping[type[errors.StandfastError], str]] = {
    errors.ConflictError: "look again, then repeat the command",
    errors.HeldError: "look again, then repeat the command",
    errors.SchemaMismatchError: "`standfast migrate` brings the database to the schema of this code",
    errors.StoppedError: "`standfast doctor` tells whether there is maintenance",
}

_REFUSALS: Final[Mapping[str, str]] = {
    "APPROVAL_VERSION_STALE": (
        "`standfast docs show TYPE ID --version N` shows it, `standfast decide … --document-version N` decides on it"
    ),
    "archived": "`standfast definitions restore` takes a version into use again, `standfast definitions archived` lists those",
    "dead_letters": (
        "`standfast retry RUN STEP` retries a failed step, `standfast processes resume RUN` that of a process"
    ),
}
"""Remedies by rejection reason."""

_NEWER: Final = "newer than this code"
_PUBLISHING: Final = (
    "`standfast publish FILE` publishes one, and so does a worker that has it (`standfast worker --app …`)"
)
_DATABASE: Final = "--database (or STANDFAST_DATABASE, or `database` in standfast.toml)"
_KEYS: Final = "an operator with access to the database creates one: `standfast keys create NAME --actor ID --scope '*' --database URL`"


def in_commands(sentence: str) -> str:
    """Rewrite an engine's message for the shell: calls become commands, and instants are formatted as in tables."""
    for call, command in _COMMANDS:
        sentence = call.sub(command, sentence)
    return _INSTANT.sub(r"\1Z", sentence)


def next_step(error: errors.StandfastError, *, is_remote: bool) -> str:
    """Return the next step; empty if there is none."""
    notes: list[str] = getattr(error, "__notes__", [])
    match error:
        case errors.NotFoundError(kind=kind) if kind in _LISTS:
            told = f"`standfast {_LISTS[kind]}` shows what there is; {'the key' if is_remote else '--tenant'} selects the tenant"
            return f"{told}; {_PUBLISHING}" if kind == "workflow" else told
        case errors.ForbiddenError(reason="unauthenticated"):
            return f"say a key that holds by STANDFAST_API_KEY; {_KEYS}{_trace(notes)}"
        case _ if notes:
            return notes[0]  # A server sends the remedy.
        case errors.StoreUnavailableError():
            return f"see whether the database is up, whether its disk has room, and whether {_DATABASE} names the right one"
        case errors.ForbiddenError():
            return "--as names the acting user, --role and --can add roles and capabilities; without --as the engine itself acts"
        case errors.SchemaMismatchError() if _NEWER in str(error):
            return "`standfast --version` tells which one this is; nothing brings a database back to an older schema but a backup"
        case errors.RejectedError(reason=reason) if reason in _REFUSALS:
            return _REFUSALS[reason]
        case _:
            return _KINDS.get(type(error), "")


def _trace(notes: list[str]) -> str:
    """Where the server's log has it, as the note of an error tells."""
    found = re.search(r" \(trace [0-9a-f]+\)$", notes[0]) if notes else None
    return found[0] if found else ""
