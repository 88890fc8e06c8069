"""Calls of processes, as their specification has them: start, advance, get, cancel, list, and what is over.

A look at all timers that are due, for those who have no worker, or do not want to wait for one.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TypeAlias

from msgspec import structs

from standfast.calls.context import CallContext, checked_key, checked_limit, checked_text, failed
from standfast.calls.handlers.step_handlers import plain_data
from standfast.calls.nonblocking import aside
from standfast.calls.references import InstanceLike, checked_definition, checked_instance
from standfast.calls.reply_chaining import and_then
from standfast.calls.waiters import PATIENCE, IdleWait, is_at_rest
from standfast.engine.commit.submission import CommandOutcome
from standfast.engine.common.operator_watch import WorkSwitch
from standfast.engine.concurrency.replies import Reply
from standfast.engine.dispatcher import Dispatcher
from standfast.engine.loops.due_work import MOST, DueWork
from standfast.errors import CommandError, NotFoundError, PayloadError, RejectedError, StandfastError
from standfast.features.processes import reads as p
from standfast.features.processes.advance import Landing, advanced, carried_out, landed
from standfast.features.processes.error_details import (
    for_caller,
    neutral_descriptor,
    neutral_instance,
    neutral_trail,
    tells_of_error,
)
from standfast.features.processes.reads import expired
from standfast.features.processes.views import (
    ExpiredProcess,
    ProcessDescriptor,
    ProcessEvent,
    ProcessInstance,
    ProcessPage,
)
from standfast.features.runs.reads import LARGEST_PAGE
from standfast.features.runs.start import check_right, start_run_and_view
from standfast.features.tasks.authorization import authority_at, decider_at
from standfast.features.tasks.reads import inboxes
from standfast.features.tasks.separation import DirectoryAnswers, looked, open_in
from standfast.graph.status_words.by_kind import words_of
from standfast.kernel.ids import InstanceId
from standfast.machine.model.commands import run_commands as c
from standfast.people.authority import Authority
from standfast.store.ports.reading import MOST_COUNTED, AskedOf, Match, TenantReader
from standfast.store.ports.store import StoreParts


def fire_due_timers(service: Dispatcher) -> int:
    """Hand in all that is due, and wait until each of it is settled; how many there were."""
    settled = threading.Semaphore(0)
    begun: list[DueWork] = []

    def sweep(parts: StoreParts) -> int:
        due = DueWork(
            parts,
            service.shared,
            standing=service.standing,
            vocabularies=service.vocabularies,
            switch=WorkSwitch(),
            effects_ready=service.hint,
        )
        begun.append(due)
        count = 0
        while True:
            fired, _ = due.fire(settled.release)
            count += fired
            if fired < MOST:
                return count

    count = service.operate(sweep)
    if service.has_threads:
        patience = service.shared.settings.patience.total_seconds()
        for _ in range(count):
            if not settled.acquire(timeout=patience):
                break  # The database is away; what is in hand comes due again.
    for due in begun:
        service.operate(lambda _parts, due=due: due.chores.run())  # type: ignore[misc]
    return count


Keep: TypeAlias = Callable[[Sequence[InstanceId]], list[InstanceId]]
"""Leaves out what does not count."""

_KEYS = "%processes"
"""Where the idempotency keys of starts are kept: one place for all processes of a tenant. No definition has this name."""
_LONGEST = timedelta(days=1).total_seconds()


class FutureProcesses:
    """What can be asked of processes. Who acts, and for which tenant and partition, is the request of these calls (`acting`)."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    @aside
    def start(
        self,
        workflow_id: str,
        input: dict[str, object] | None = None,  # noqa: A002 - the word that everybody uses for it
        *,
        version: str | int = "",
        key: str = "",
        idempotency_key: str = "",
        comment: str = "",
        patience: timedelta | float = PATIENCE,
    ) -> Reply[ProcessInstance]:
        """Start a process; its first step is entered, and automatic steps are done until it waits for somebody.

        `idempotency_key` makes the call safe to repeat: the same key gives the same instance, once for a tenant; another start under
        it is refused (`IDEMPOTENCY_CONFLICT`). `patience` is how long the call waits for automatic steps, as a timedelta or in
        seconds: what takes longer, or all of it with 0, is left to the workers, and the answer tells how things stand.
        """
        try:
            (name, pinned), seconds = self._process(workflow_id, version), _seconds(patience)
        except StandfastError as error:
            return failed(p.in_process_words(error))

        def begin(desk: CallContext) -> Reply[CommandOutcome]:
            try:
                check_right(desk, name, pinned)
                data = _input(desk, input)
            except StandfastError as error:
                return failed(error)
            return start_run_and_view(
                desk,
                name,
                data,
                version=pinned,
                key=key,
                idempotency_key=idempotency_key,
                comment=comment,
                scope=_KEYS,
                view=landed,
            )

        def rest(outcome: CommandOutcome) -> Reply[ProcessInstance]:
            landing, identity = outcome.seen, outcome.instance
            if isinstance(landing, Landing):
                return self._rested(landing, seconds)
            assert identity is not None, "a start that was accepted has an instance"
            return self._at_rest(identity, seconds, of=name)

        return and_then(self._desk.known(begin), rest, self._reply(), rescue=_refused)

    def advance(
        self,
        instance: InstanceLike,
        event: str,
        input: dict[str, object] | None = None,  # noqa: A002 - the word that everybody uses for it
        *,
        comment: str = "",
        on_behalf_of: str = "",
        expected_version: int | None = None,
        patience: timedelta | float = PATIENCE,
    ) -> Reply[ProcessInstance]:
        """Leave the current step by an event, with what its form asks for; automatic steps that follow are done, as in `start`.

        Refused in this order: there is no such instance (NotFoundError), it is not active (`WORKFLOW_NOT_ACTIVE`), the caller lacks the
        capability or the role of the step (ForbiddenError), it was changed since the caller looked (`VERSION_CONFLICT`), no transition is
        open by this event (`INVALID_TRANSITION`), the input is not what the form asks for (`VALIDATION_ERROR`). `expected_version` is that
        of the instance as the caller has seen it; without it an advance that others were faster than is judged anew. Whoever stands in for
        several of those who are asked says for whom by `on_behalf_of`.
        """
        try:
            seconds, identity = _seconds(patience), checked_instance(instance)
            told, data = checked_key(event, "event"), _input(self._desk, input)
            checked_text(comment, "comment")
            stood_in_for = checked_key(on_behalf_of, "name of whom the actor stands in for", may_be_empty=True)
            _checked_version(expected_version)
        except StandfastError as error:
            return failed(error)

        request = self._desk.request
        sees_all = request.actor.kind == "system" and not request.partition
        command = c.AdvanceProcess(
            event=told,
            data=data or None,
            comment=comment,
            partition=None if sees_all else request.partition,
            expected=expected_version,
        )
        sent = advanced(self._desk, identity, command, on_behalf_of=stood_in_for)
        return self._landed(sent, identity, seconds)

    def get(self, instance: InstanceLike) -> Reply[ProcessDescriptor]:
        """What a front end needs to show an instance to the caller: its step, the form, the events that the caller may advance it by."""

        def read() -> ProcessDescriptor:
            decider, identity = decider_at(self._desk), checked_instance(instance)
            with self._desk.reader.look() as reader:
                found = p.known(self._desk, reader, identity)
                names = p.relied_on_at(self._desk, reader, found, decider)
                if not names:
                    return p.descriptor_of(self._desk, reader, found, decider)
            people = self._desk.told_of(names)
            with self._desk.reader.look() as reader:
                return p.descriptor_of(
                    self._desk, reader, p.known(self._desk, reader, identity), decider, people=people
                )

        return for_caller(self._desk, self._desk.consult(read), neutral_descriptor)

    def events(self, instance: InstanceLike, *, with_lifecycle: bool = False) -> Reply[builtins.list[ProcessEvent]]:
        """The trail of an instance: what happened to its steps, and `with_lifecycle` also what happened to the instance itself."""

        def read(reader: TenantReader) -> list[ProcessEvent]:
            trail = p.trail_of(p.known(self._desk, reader, checked_instance(instance)))
            return [each for each in trail if with_lifecycle or each.category == "step"]

        return for_caller(self._desk, self._desk.look(read), neutral_trail)

    def cancel(
        self, instance: InstanceLike, reason: str = "", *, expected_version: int | None = None
    ) -> Reply[ProcessInstance]:
        """End an instance that is active or suspended; nothing is undone. It takes the capability that the definition names for that."""
        try:
            identity, why = checked_instance(instance), checked_text(reason, "reason")
            _checked_version(expected_version)
        except StandfastError as error:
            return failed(error)

        def check(reader: TenantReader) -> int | None:
            found = p.known(self._desk, reader, identity)
            if found.header.ended_at is not None:
                raise _not_active(found)
            p.check_stopping(self._desk, found)
            _check_version(found, expected_version)
            return None if expected_version is None else found.header.version

        def stop(seen: int | None) -> Reply[CommandOutcome]:
            return carried_out(self._desk, identity, c.CancelWorkflow(reason=why, seen=seen), why)

        return self._landed(and_then(self._desk.look(check), stop, Reply()), identity, 0)

    def resume(
        self,
        instance: InstanceLike,
        reason: str = "",
        *,
        expected_version: int | None = None,
        patience: timedelta | float = PATIENCE,
    ) -> Reply[ProcessInstance]:
        """Let a suspended instance go on: a pause ends, a step that failed is tried again, and one that waits is left as if it had waited long enough.

        It takes the capability `execution:resume`, and `execution:override` to leave a wait for an event. A wait is left only by whoever says
        by `expected_version` that they saw it: the same call twice would do two things otherwise. An active instance is refused
        (`INVALID_TRANSITION`).
        """
        try:
            seconds, identity, why = _seconds(patience), checked_instance(instance), checked_text(reason, "reason")
            _checked_version(expected_version)
        except StandfastError as error:
            return failed(error)

        def plan(reader: TenantReader) -> c.RequeueStep | c.ResumeWorkflow:
            found = p.known(self._desk, reader, identity)
            if found.header.ended_at is not None:
                raise _not_active(found)
            if found.is_active:
                told = "the instance is active; only a suspended one is resumed"
                raise RejectedError(reason=p.ProcessCode.INVALID_TRANSITION, message=told)
            _check_version(found, expected_version)
            seen = None if expected_version is None else found.header.version
            if found.state.status != "paused":
                p.check_resuming(self._desk, found)
                _check_seen(found, seen)
                return c.ResumeWorkflow(reason=why, past_wait=True, seen=seen)
            dead = next(iter(found.state.dead), None)
            if dead is None or found.state.pause is not None:
                return c.ResumeWorkflow(reason=why, past_wait=False, seen=seen)
            p.check_resuming(self._desk, found)
            return c.RequeueStep(step=dead, reason=why)

        def send(command: c.RequeueStep | c.ResumeWorkflow) -> Reply[CommandOutcome]:
            return carried_out(self._desk, identity, command, why)

        return self._landed(and_then(self._desk.look(plan), send, Reply()), identity, seconds)

    def list(  # noqa: PLR0913 - filters
        self,
        *,
        status: str | Sequence[str] = (),
        workflow_id: str = "",
        key: str = "",
        subject_id: str = "",
        role: str | None = None,
        mine: bool = False,
        exact_total: bool = False,
        cursor: InstanceLike | None = None,
        limit: int = 100,
    ) -> Reply[ProcessPage]:
        """Instances of the caller's tenant and partition, newest first, and how many there are on all pages.

        They are counted up to a thousand, and `is_total_exact` says whether that is all of them; `exact_total` has all of them counted, which takes
        as long as there are many. `status` is one or several of `active`, `suspended`, `completed`, `failed` and `cancelled`. `mine` are those at a step that asks
        the caller, by name or by a role, and that the caller may decide, as in `tasks.list(mine=True)`; `role` those at a step that asks a role.
        """

        def read() -> ProcessPage:
            request = self._desk.request
            everywhere = request.actor.kind == "system" and not request.partition
            size = min(checked_limit(limit), LARGEST_PAGE)
            authority = authority_at(self._desk) if _checked_flag(mine, "mine") else None
            match = Match(
                statuses=_stored(status),
                definition=checked_key(workflow_id, "workflow id", may_be_empty=True),
                key=checked_key(key, "key", may_be_empty=True),
                partition=None if everywhere else request.partition,
                started_by=checked_key(subject_id, "subject id", may_be_empty=True),
                people=_asked(role, authority),
                before=None if cursor is None else checked_instance(cursor),
                limit=size + 1,
                most=None if _checked_flag(exact_total, "exact_total") else MOST_COUNTED,
            )
            if authority is not None and role is None:
                return looked(self._desk, partial(_page_of_mine, desk=self._desk, match=match, authority=authority))
            with self._desk.reader.look() as reader:
                return _page(self._desk, reader, match, reader.matching(match), reader.count_matching(match))

        return self._desk.consult(read) if mine else self._desk.read(read)

    def expired(
        self,
        *,
        before: datetime | None = None,
        tenant: str = "",
        after: ExpiredProcess | None = None,
        limit: int = 100,
    ) -> Reply[builtins.list[ExpiredProcess]]:
        """Active instances whose time is over before an instant, now if none is given, the longest overdue first; one whose time is over at it is not.

        `tenant` is another one, or `*` for all, and for the engine itself to say. Give the last one as `after` for the next page. It takes the
        capability to look at runs.
        """
        return self._desk.read(lambda: expired(self._desk, before=before, tenant=tenant, after=after, limit=limit))

    def process_timeouts(self) -> Reply[int]:
        """Do what is due: steps and instances whose time is over go where their definition says. How many timers were due.

        Workers do so by themselves; this is for those who have none, and for tests.
        """
        return self._desk.read(lambda: fire_due_timers(self._desk.service))

    # -- how

    def _reply(self) -> Reply[ProcessInstance]:
        return self._desk.reply()

    def _process(self, workflow_id: str, version: str | int) -> tuple[str, str]:
        library = self._desk.registry.library
        name, pinned = library.find(self._desk.tenant, *checked_definition(workflow_id, version))
        program = library.program(self._desk.tenant, name, pinned)
        if program is None or program.kind != p.KIND:
            raise NotFoundError("process", workflow_id, hint="it is started by the calls of its own kind")
        return name, pinned

    def _landed(self, sent: Reply[CommandOutcome], identity: InstanceId, seconds: float) -> Reply[ProcessInstance]:
        """The instance once it rests, or as it stands when the time is over, after a command that goes to it."""

        def rest(outcome: CommandOutcome) -> Reply[ProcessInstance]:
            landing = outcome.seen
            return self._rested(landing, seconds) if isinstance(landing, Landing) else self._at_rest(identity, seconds)

        def refuse(error: BaseException) -> Reply[ProcessInstance]:
            if isinstance(error, CommandError):  # It may be no process at all, which then cannot be found.
                return and_then(self._look(identity), lambda _: failed(error), self._reply())
            return failed(p.in_process_words(p.missing_if_absent(error, identity)))

        return and_then(sent, rest, self._reply(), rescue=refuse)

    def _look(self, identity: InstanceId) -> Reply[ProcessInstance]:
        found = self._desk.look(lambda reader: p.instance_of(p.known(self._desk, reader, identity)))
        return for_caller(self._desk, found, neutral_instance)

    def _at_rest(self, identity: InstanceId, seconds: float, *, of: str = "") -> Reply[ProcessInstance]:
        """The instance once it rests, by the database. A key may have led to one of another process than is meant."""

        def look(reader: TenantReader) -> Landing:
            try:
                found = p.known(self._desk, reader, identity)
            except NotFoundError:
                if of:  # A key has led to what is elsewhere, of which nothing is told.
                    raise _used_key("elsewhere") from None
                raise
            if of not in {"", found.header.definition}:
                raise _used_key(f"to start {found.header.definition!r}")
            return Landing(identity, found.header.version, p.instance_of(found), is_at_rest(found.state))

        return and_then(self._desk.look(look), lambda landing: self._rested(landing, seconds), self._reply())

    def _rested(self, landing: Landing, seconds: float) -> Reply[ProcessInstance]:
        """The instance once it rests, or as it stands when the time is over."""

        def rests() -> bool:
            with self._desk.reader.look() as reader:
                return is_at_rest(p.known(self._desk, reader, landing.id).state)

        if landing.is_at_rest or seconds <= 0 or not self._desk.service.has_threads:
            return self._seen(landing)
        rested: Reply[object] = Reply()
        waiting = IdleWait(view=landed, look=rests, bring=rested.set_result, seconds=seconds)
        self._desk.endings.rests.wait(landing.id, landing.version, waiting)
        return and_then(
            rested,
            lambda seen: self._seen(seen if isinstance(seen, Landing) else landing._replace(instance=None)),
            self._reply(),
        )

    def _seen(self, landing: Landing) -> Reply[ProcessInstance]:
        if landing.instance is None:
            return self._look(landing.id)
        seen = Reply.of(landing.instance)
        return for_caller(self._desk, seen, neutral_instance) if tells_of_error(landing.instance) else seen


def _asked(role: str | None, authority: Authority | None) -> tuple[AskedOf, ...] | None:
    """Those who are asked at the steps that are wanted; None if whoever is asked does not matter."""
    if role is not None:
        return (AskedOf("role", checked_key(role, "role")),)
    if authority is None:
        return None
    own = inboxes(authority)
    some = sorted({each.definition for each in authority.stands_in_for if each.definition})
    others = [AskedOf(*each[:2], name) for name in some for each in inboxes(authority, name) if each not in own]
    return (*(AskedOf(*each[:2]) for each in own), *others)


def _page_of_mine(
    reader: TenantReader, told: DirectoryAnswers, *, desk: CallContext, match: Match, authority: Authority
) -> ProcessPage:
    """A page of those in which the caller may decide."""
    keep = partial(open_in, desk, reader, authority=authority, told=told)
    return _page(desk, reader, match, *_of_mine(desk, reader, match, keep, authority=authority))


def _of_mine(
    desk: CallContext, reader: TenantReader, match: Match, keep: Keep, *, authority: Authority
) -> tuple[list[InstanceId], int]:
    """A page of those that are kept, and how many they are; beyond a bound, how many match."""
    count = _count_of_all(desk, reader, match, authority)
    total = reader.count_matching(match) if count is None else count
    if match.most is not None and total > match.most:
        return list(islice(_kept(reader, match, keep), match.limit)), total
    if count is not None:
        return reader.matching(match), total
    every = list(_kept(reader, structs.replace(match, before=None, limit=LARGEST_PAGE), keep))
    found = every if match.before is None else [each for each in every if each.int < match.before.int]
    return found[: match.limit], len(every)


def _count_of_all(desk: CallContext, reader: TenantReader, match: Match, authority: Authority) -> int | None:
    """How many match, if the caller may decide in all of them; None if that cannot be told without looking at each.

    They are asked by roles that they have themselves and have not decided yet, nothing is paused, and no version tells deciders apart.
    """
    people, actor = match.people or (), authority.actor
    service = desk.service
    if authority.stands_in_for or actor.on_behalf_of or service.standing.pauses or service.maintenance:
        return None
    roles = tuple(each for each in people if each.kind == "role" and each.name in actor.roles)
    others = tuple(each for each in people if each not in roles)
    if others and reader.count_matching(structs.replace(match, people=others, most=0)):
        return None
    counts = reader.count_versions(structs.replace(match, people=roles), actor.id) if roles else []
    for each in counts:
        if each.status == "paused" or each.has_voted or not p.may_all_decide(desk, each.definition, each.version):
            return None
    return sum(each.total for each in counts) if len(roles) <= 1 else reader.count_matching(match)


def _kept(reader: TenantReader, match: Match, keep: Keep) -> Iterator[InstanceId]:
    """Those that match and are kept, newest first."""
    while page := reader.matching(match):
        yield from keep(page)
        if len(page) < match.limit:
            return
        match = structs.replace(match, before=page[-1])


def _page(  # noqa: PLR0917 - what was found
    desk: CallContext, reader: TenantReader, match: Match, found: Sequence[InstanceId], total: int
) -> ProcessPage:
    """A page of one less than is looked for."""
    size = match.limit - 1
    ids = found[:size]
    headers = {header.id.int: header for header in reader.headers(ids)}
    items = p.summaries_of(desk, reader, [headers[each.int] for each in ids if each.int in headers])
    is_last, most = len(found) <= size, match.most
    is_exact = most is None or total <= most
    counted = total if is_exact or most is None else most
    return ProcessPage(items=items, total=counted, is_total_exact=is_exact, next=None if is_last else ids[-1])


def _checked_flag(given: object, name: str) -> bool:
    if not isinstance(given, bool):
        raise PayloadError(f"`{name}` is True or False, not {given!r}")
    return given


def _stored(status: str | Sequence[str]) -> tuple[str, ...]:
    """What is stored of the instances that these words stand for."""
    words = words_of(p.KIND)
    known = (*words.ACTIVE, *words.TERMINAL)
    wanted: object = status  # What a caller without types gave.
    if not isinstance(wanted, str | list | tuple | set | frozenset):
        raise PayloadError(f"the status is one or several of {', '.join(known)}, not {status!r}")
    given = [wanted] if isinstance(wanted, str) and wanted else list(wanted) or list(known)
    for word in given:
        if word not in known:
            raise PayloadError(f"there is no status {word!r}; there are {', '.join(known)}")
    return tuple(each for statuses, _ in words.stored_statuses(given) for each in statuses)


def _seconds(patience: timedelta | float) -> float:
    given: object = patience  # What a caller without types gave.
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds <= _LONGEST:
        raise PayloadError(f"the patience must be a timedelta or a number of seconds, at most a day, not {patience!r}")
    return float(seconds)


def _input(desk: CallContext, given: object) -> dict[str, object]:
    return plain_data({} if given is None else given, "input", limit=desk.payload_limit)


def _checked_version(given: object) -> None:
    if given is not None and (not isinstance(given, int) or isinstance(given, bool)):
        raise PayloadError(f"the expected version is a whole number, as an instance tells it, not {given!r}")


def _check_version(found: p.KnownProcess, expected: int | None) -> None:
    if expected is not None and expected != found.version:
        told = f"it has version {found.version} by now, not {expected}; look at it again"
        raise RejectedError(reason=p.ProcessCode.VERSION_CONFLICT, message=told)


def _check_seen(found: p.KnownProcess, seen: int | None) -> None:
    """Nobody goes past a wait by accident, such as by the second click on a button that ends a pause."""
    if seen is None:
        step = "" if found.step is None else found.step.node
        told = (
            f"it is not paused: it waits at {step!r}. To leave that wait, say by expected_version which version you saw"
        )
        raise PayloadError(told)


def _not_active(found: p.KnownProcess) -> RejectedError:
    status = p.status_of(found.header)
    remedy = "resume it first" if status == "suspended" else "it has ended"
    return RejectedError(reason=p.ProcessCode.WORKFLOW_NOT_ACTIVE, message=f"the instance is {status}; {remedy}")


def _used_key(how: str) -> RejectedError:
    told = f"the idempotency key was used {how}; give each start a key of its own"
    return RejectedError(reason=p.ProcessCode.IDEMPOTENCY_CONFLICT, message=told)


def _refused(error: BaseException) -> Reply[ProcessInstance]:
    return failed(p.in_process_words(error))
