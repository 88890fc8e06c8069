"""`standfast doctor` and `standfast verify`: check a database, the invariants of documents, and the data after a restore."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import click
import msgspec

from standfast.app.api.sync import Calls
from standfast.app.copy import copies_of
from standfast.app.engine import Engine
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import complain, end, is_terminal, verb
from standfast.cli.hints import in_commands
from standfast.cli.options import FileName, listed
from standfast.cli.output import cell, json_option, print_json
from standfast.cli.target import Target, tenant_scope
from standfast.engine.common.clock import DatabaseClock
from standfast.errors import ConfigurationError, ConflictError, ForbiddenError, NotFoundError
from standfast.features.access.views import ApiKey
from standfast.features.deciders.verification import Verification
from standfast.features.documents.invariants.views import InvariantPage, Mended, Violation
from standfast.features.operations.restore import MOST_KEYS, SentEffect

_STRETCH = 1000
"""Documents between two progress reports. After an interruption the check resumes behind the last completed batch."""
_REASON = "standfast doctor --invariants --repair"


def look(calls: Calls, *, rules: Sequence[str], repairs: bool, anew: bool, as_json: bool) -> None:
    """Check all workflows and documents of a tenant, report violations, and repair them on request."""
    found = calls.invariants.workflows(rules=rules)
    for each in () if as_json else found:
        _print_violation(each)
    mended: list[Mended] = []
    checked = 0
    for page in _stretches(calls, rules, anew=anew):
        checked += page.checked
        found += page.items
        for each in () if as_json else page.items:
            _print_violation(each)
        if repairs:
            mended += _repaired(calls, page)
        complain(f"{checked} documents looked at, {len(found)} findings")
    left = _left(found, mended)
    if as_json:
        print_json({"is_well": not left, "checked": checked, "findings": found, "repaired": mended})
    else:
        for done in mended:
            click.echo(f"repaired {done.instance}: {_done(done)}")
        click.echo(f"{checked} documents keep all rules" if not found else f"{len(left)} findings are left")
    end(Exit.NO if left else Exit.DONE)


def _stretches(calls: Calls, rules: Sequence[str], *, anew: bool) -> Iterator[InvariantPage]:
    """Iterate over the remaining batches of a check, or over all."""
    page = calls.invariants.patrol(limit=_STRETCH, rules=rules, anew=anew)
    yield page
    while page.next is not None:
        page = calls.invariants.patrol(limit=_STRETCH, rules=rules)
        yield page


def _repaired(calls: Calls, page: InvariantPage) -> Iterator[Mended]:
    """Repair the documents of a batch; return the repairs."""
    for instance in dict.fromkeys(each.instance for each in page.items if each.is_repairable):
        if instance is None:
            continue
        try:
            yield calls.invariants.repair(instance, reason=_REASON)
        except ConflictError as error:
            complain(str(error), code=error.code)


def _left(found: Sequence[Violation], mended: Sequence[Mended]) -> list[Violation]:
    """Return the remaining violations."""
    settled = {done.instance for done in mended}
    return [*(each for each in found if each.instance not in settled), *(each for done in mended for each in done.left)]


def _done(mended: Mended) -> str:
    rows = f"rows of {', '.join(mended.tables)}" if mended.tables else ""
    calls = f"{len(mended.withdrawn)} calls withdrawn" if mended.withdrawn else ""
    again = f"steps {', '.join(map(str, mended.called))} called again" if mended.called else ""
    return "; ".join(filter(None, (rows, calls, again))) or "its status"


def _print_violation(found: Violation) -> None:
    where = f"{found.document} ({found.instance})" if found.document else found.definition
    click.echo(f"✗ {found.rule} {cell(where)}: {cell(found.told)}\n    → {found.remedy}")


def compare(calls: Calls, received: str, *, as_json: bool) -> None:
    """Report the effects sent after the restore point, by the keys in a file; exit code 1 if there are any."""
    try:
        with click.open_file(received, encoding="utf-8") as lines:
            keys = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{received} cannot be read: {error}") from None
    found: list[SentEffect] = []
    for start in range(0, len(keys), MOST_KEYS):
        found += calls.instances.sent(keys[start : start + MOST_KEYS])
    later = [each for each in found if each.state in {"again", "lost"}]
    if as_json:
        print_json({"is_well": not later, "counts": Counter(each.state for each in found), "findings": later})
    else:
        for each in later:
            where = " ".join(filter(None, (each.definition, each.business_key, each.step)))
            click.echo(f"✗ {cell(each.key)} {each.state} {cell(where)}\n    → {each.told}")
        counts = Counter(each.state for each in found)
        click.echo(", ".join(f"{counts[state]} {state}" for state in ("known", "again", "lost", "unknown")))
    end(Exit.NO if later else Exit.DONE)


_MOST_TOLD = 5
_MARKS = {"well": "✓", "note": "·", "problem": "✗"}
_COLOURS = {"well": "green", "note": "yellow", "problem": "red"}


class HealthFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    what: str
    state: Literal["well", "note", "problem"]
    told: str
    remedy: str = ""


@verb(
    "doctor",
    "standfast doctor",
    "standfast doctor --json",
    "standfast doctor --invariants --repair",
    "standfast doctor --after-restore keys.txt",
)
@click.option("--invariants", "is_patrol", is_flag=True, help="Look at the rules that every document keeps instead.")
@click.option("--repair", "repairs", is_flag=True, help="With --invariants: repair violations from the history.")
@click.option(
    "--anew", is_flag=True, help="With --invariants: begin with the newest, wherever the last look was stopped."
)
@click.option("--rule", "rules", multiple=True, metavar="CODE", help="With --invariants: only this rule; repeatable.")
@click.option(
    "--after-restore",
    "received",
    default="",
    metavar="FILE",
    type=FileName(),
    help="Compare with the idempotency keys that receivers have seen, one in each line of a file or of - instead.",
)
@json_option
@tenant_scope
def doctor(
    place: Target,
    *,
    as_json: bool,
    is_patrol: bool,
    repairs: bool,
    anew: bool,
    rules: tuple[str, ...],
    received: str,
) -> None:
    """Check the health of a database: workers, backlog, dead letters, stuck runs; or the invariants of documents.

    Exit code 0: all is well. 1: there is a problem. 7 and 8: the database itself is unusable. A check of invariants
    takes no lock. It can be interrupted at any time, and resumes where it stopped. After a restore from a backup,
    --after-restore lists effects that receivers have seen and the database does not know.
    """
    if received:
        if is_patrol or repairs or anew or rules:
            raise ConfigurationError("--after-restore is a look of its own; leave out the others")
        with place.calls() as calls:
            compare(calls, received, as_json=as_json)
        return
    if is_patrol:
        with place.calls() as calls:
            look(calls, rules=rules, repairs=repairs, anew=anew, as_json=as_json)
        return
    if repairs or anew or rules:
        raise ConfigurationError(
            "--repair, --anew and --rule say how to look at the rules of documents; add --invariants"
        )
    with place.plant() as (engine, calls):
        found = [
            *_of_engine(engine),
            *_of_tenant(calls),
            *_of_others(engine, calls, is_asked=place.source.is_said("tenant")),
        ]
    is_well = all(each.state != "problem" for each in found)
    if as_json:
        print_json({"is_well": is_well, "findings": found})
    else:
        for each in found:
            click.echo(_line(each))
    end(Exit.DONE if is_well else Exit.NO)


def _line(finding: HealthFinding) -> str:
    mark = _MARKS[finding.state]
    mark = click.style(mark, fg=_COLOURS[finding.state]) if is_terminal() else mark
    remedy = f"\n    → {finding.remedy}" if finding.remedy else ""
    return f"{mark} {finding.what}: {cell(finding.told)}{remedy}"


def _finding(what: str, told: str, *, problem: str = "", note: str = "") -> HealthFinding:
    """Return a finding: a problem, or a note, if it has a remedy."""
    state: Literal["well", "note", "problem"] = "problem" if problem else "note" if note else "well"
    return HealthFinding(what=what, state=state, told=told, remedy=problem or note)


def _of_engine(engine: Engine) -> Iterator[HealthFinding]:
    """Check what concerns all tenants."""
    workers, backlog = engine.admin.workers(), engine.admin.backlog()
    waiting = sum(each.count for each in backlog)
    yield _finding("database", "it answers, and has the schema of this code")
    mode = engine.health().maintenance
    held = {"pause": "no work is begun", "refuse": "no work is begun, and commands are refused"}
    yield _finding("maintenance", held.get(mode, "none"), note="an operator began it, and must end it" if mode else "")
    if isinstance(engine, Engine):
        yield from _of_copies(engine)
    names = ", ".join(each.name for each in workers) or "none"
    idle = "start one: `standfast worker --app module:attribute`"
    yield _finding("workers", names, problem=idle if waiting and not workers else "", note="" if workers else idle)
    told = ", ".join(f"{each.count} of {each.kind} {each.name!r}" for each in backlog) or "nothing"
    yield _finding("waiting work", told)
    missing = engine.admin.missing_handlers()
    told = ", ".join(f"{each.handler!r} ({each.waiting} since {cell(each.since)})" for each in missing) or "none"
    yield _finding("missing handlers", told, problem="start a worker that has them" if missing else "")
    yield from _incidents(engine)
    failing = [each for each in engine.projections.list() if each.error]
    told = ", ".join(f"{each.name!r}: {each.error}" for each in failing) or "none is held up"
    yield _finding(
        "projections", told, problem="fix the reported errors; the projections resume automatically" if failing else ""
    )


_INCIDENTS = {
    "no_approver": "undecidable questions",
    "refused_schedule": "refused schedules",
    "hung_call": "calls that may hang",
    "unreadable": "unreadable work",
}


def _incidents(engine: Engine) -> Iterator[HealthFinding]:
    """Check incidents of all tenants: work that does not recover without an operator."""
    incidents = engine.admin.incidents()
    for kind, what in _INCIDENTS.items():
        found = [each for each in incidents if each.kind == kind]
        told = "; ".join(each.told for each in found[:_MOST_TOLD]) or "none"
        more = f"; and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
        yield _finding(what, f"{told}{more}", problem=in_commands(found[0].remedy) if found else "")


def _of_copies(engine: Engine) -> Iterator[HealthFinding]:
    """Check for an incomplete copy into this database, and for a copy that has replaced it."""
    origin, place = copies_of(engine)
    if origin:
        told = f"that of {origin} into this database was not verified to its end"
        yield _finding("copy", told, problem="`standfast drop` removes it; then run `standfast copy` again")
    if place:
        yield _finding("copy", f"everything here was copied into {place}", note="go on there, or drop the copy")


def _of_tenant(calls: Calls) -> Iterator[HealthFinding]:
    """Check what concerns the tenant of the calls."""
    stuck = calls.runs.stuck(limit=10)
    told = ", ".join(str(each.id) for each in stuck) or "none"
    yield _finding("stuck runs", told, problem="`standfast why RUN` says what could be done" if stuck.items else "")
    letters = calls.dead_letters.count()
    yield _finding("dead letters", str(letters), problem="`standfast dlq list` shows them" if letters else "")
    if calls.request.partition:
        return  # Pauses and users belong to the whole tenant.
    yield from _of_leavers(calls)
    pauses = calls.pauses.list(limit=10)
    told = ", ".join(f"{each.id} ({each.definition or 'all'} by {each.paused_by})" for each in pauses) or "none"
    yield _finding("pauses", told, note="`standfast pauses resume ID` ends one" if pauses else "")


def _of_leavers(calls: Calls) -> Iterator[HealthFinding]:
    """Check for valid keys that a deactivated user has created.

    Keys that act as the user end with the user; those of programs do not.
    """
    found, after, now = list[ApiKey](), "", DatabaseClock().now()
    try:
        while page := calls.keys.list(after=after):
            found += [each for each in page if each.holds(now) and each.actor != each.created_by]
            after = page[-1].id
        left = {name for name in {each.created_by for each in found} if _has_left(calls, name)}
    except ForbiddenError:  # Only platform operators may see keys.
        return
    still = [each for each in found if each.created_by in left]
    if still:
        told = "; ".join(f"{each.id} ({each.name!r} as {each.actor!r}, made by {each.created_by!r})" for each in still)
        yield _finding(
            "keys of leavers", told, note="look whether they are still needed; `standfast keys revoke ID` ends one"
        )


def _has_left(calls: Calls, name: str) -> bool:
    try:
        return not calls.directory.get(name).is_active
    except NotFoundError:
        return False


def _of_others(engine: Engine, calls: Calls, *, is_asked: bool) -> Iterator[HealthFinding]:
    """Check for dead letters of other tenants, which are a note if --tenant was given."""
    tenant = calls.request.tenant
    others = [each for each in engine.admin.given_up() if each.tenant != tenant]
    if others:
        told = ", ".join(f"{each.count} of {each.tenant!r}" for each in others)
        remedy = f"`standfast doctor --tenant {shlex.quote(others[0].tenant)}` looks at them"
        problem, note = ("", remedy) if is_asked else (remedy, "")
        yield _finding("dead letters of other tenants", told, problem=problem, note=note)


@verb("verify", "standfast verify 01a1e766-3ad5-7618-92bc-aee7fef0c9eb", "standfast verify --all --limit 500")
@click.argument("run", required=False)
@click.option("--all", "is_all", is_flag=True, help="A page of all runs, newest first.")
@listed
@tenant_scope
def verify(place: Target, *, run: str | None, is_all: bool, as_json: bool, limit: int, after: str) -> None:
    """Verify a run: fold its history again and compare it with the stored state.

    Exit code 0: it is the same. 1: there are differences.
    """
    if (run is None) != is_all:
        raise ConfigurationError("name a run, or give --all")
    more = None
    with place.calls() as calls:
        if run is not None:
            found = [calls.instances.verify(run)]
        else:
            page = calls.runs.list(cursor=after or None, limit=limit)
            found, more = [calls.instances.verify(each) for each in page], page.next
    unsound = [each for each in found if not each.is_sound]
    if as_json:
        print_json({"items": found, "next": more})
    else:
        _tell(found, unsound)
        if more is not None:
            complain(f"there is more: --after {more}")
    end(Exit.NO if unsound else Exit.DONE)


def _tell(found: list[Verification], unsound: list[Verification]) -> None:
    for each in unsound:
        click.echo(f"{each.instance} differs from its history of {each.version} events:")
        for difference in each.differences:
            click.echo(f"  {cell(difference)}")
    told = f"{len(found)} runs are" if len(found) != 1 else f"{found[0].instance} is"
    if not unsound:
        click.echo(f"{told} what the history says")
