"""What operators ask of a run that does not go on: what has to be looked up before the run itself can decide."""

from __future__ import annotations

from typing import cast

from standfast.calls.context import CallContext, nothing
from standfast.calls.references import StepLike, checked_step, described
from standfast.engine.concurrency.replies import Reply
from standfast.errors import PayloadError, RejectedError
from standfast.features.runs.reads import graph_of, workflow_row
from standfast.features.runs.views import calls_of
from standfast.graph.model import SavePointOp
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import STEPS
from standfast.machine.model.commands import repair_commands as r
from standfast.machine.model.events import StepCompleted
from standfast.machine.model.rejections import Refusal
from standfast.machine.model.state import ROOT, Data, RunState
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader, StoredEffect


def step_number(given: StepLike | int, run: InstanceId) -> int:
    """The number of a step of this run, given as such, by its id, or as the step itself."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    instance, number = checked_step(given)
    if instance != run:
        raise PayloadError(f"{described(given)} is a step of another run, {instance}")
    return number


def repaired(desk: CallContext, run: InstanceId, command: r.Repair) -> Reply[None]:
    """Have a run decide about a repair."""
    return desk.command(desk.address(instance=run), command, nothing, comment=command.reason, may_create=False)


def retried(desk: CallContext, run: InstanceId, command: r.RetryStep) -> None:
    """Have a step called now, unless a worker has it in hand."""
    call = _call(desk, run, command.step)
    if call is not None and call.owner is not None:
        worker = _live(desk, call)
        remedy = "wait for it, or stop that process" if worker else "its worker is gone: reenqueue it"
        raise _still_running(call, worker, remedy)
    repaired(desk, run, command).result()


def reenqueued(desk: CallContext, run: InstanceId, command: r.ReenqueueStep) -> None:
    """Have a step called by somebody else, unless the worker that has it in hand is alive."""
    call = _call(desk, run, command.step)
    worker = "" if call is None or call.owner is None else _live(desk, call)
    if call is not None and worker:
        raise _still_running(call, worker, "wait for it, or stop that process")
    repaired(desk, run, command).result()


def _call(desk: CallContext, run: InstanceId, step: int) -> StoredEffect | None:
    with desk.reader.look() as reader:
        workflow_row(reader, run)
        effects, _ = reader.work(run)
    return calls_of(effects, desk.registry.library.speaker).get(step)


def _live(desk: CallContext, call: StoredEffect) -> str:
    """The name of the worker that has a call in hand; empty if it is not alive."""
    moment = desk.service.shared.clock.judge()
    workers = desk.service.survey(lambda parts: parts.workers().live(moment))
    return next((each.name for each in workers if each.id == call.owner), "")


def _still_running(call: StoredEffect, worker: str, remedy: str) -> RejectedError:
    who = f"on worker {worker!r}" if worker else f"on worker {call.owner}, which is not alive,"
    message = f"the handler {call.handler!r} runs {who} since {call.claimed_at}; {remedy}"
    return RejectedError(reason=Refusal.STILL_RUNNING.value, message=message)


def moved_back(desk: CallContext, run: InstanceId, save_point: str, reason: str) -> None:
    """Have a run undo what it did behind a save point; what its data was then is in its history."""
    with desk.reader.look() as reader:
        header = workflow_row(reader, run)
        number = _passed(desk, reader, header, save_point)
        data = _data_behind(desk, reader, header, number)
    command = r.MoveBack(step=number, data=data or {}, reason=reason)
    repaired(desk, run, command).result()


def _passed(desk: CallContext, reader: TenantReader, header: InstanceHeader, name: str) -> int:
    """The last step by which a save point was passed on the main way; 0 if it never was."""
    nodes = graph_of(desk, header).nodes
    found = [
        row.number
        for row in reader.rows(STEPS, header.id)
        if row.kind == "forward" and row.token == ROOT and row.status == "completed"
        if isinstance(nodes[row.node].op, SavePointOp) and name in {"", row.node}
    ]
    return found[-1] if found else 0


def _data_behind(desk: CallContext, reader: TenantReader, header: InstanceHeader, number: int) -> Data | None:
    """The data of the first token when it had passed a step; None if that was before this history began, in the run that it was forked from."""
    program = desk.registry.get(header.tenant, header.definition, header.definition_version)
    state = program.initial()
    for stored in reader.events(header.id):
        state = program.replay(state, (stored,))
        event = None if stored.is_system else program.decode(stored)
        if isinstance(event, StepCompleted) and event.step == number:
            token = cast("RunState", state).token(ROOT)
            return None if token is None else token.data
    return None
