"""Which workflow the documents of a type go through: the one that new ones begin with, and whether there is any."""

from __future__ import annotations

from standfast.calls.context import CallContext, checked_key
from standfast.errors import NotFoundError, RejectedError
from standfast.features.documents.compiler.compatibility import start_problem
from standfast.features.documents.publishing.rejections import BlueprintRefusal, refused
from standfast.machine.machine import GraphMachine
from standfast.machine.model.rejections import Refusal
from standfast.store.ports.documents import InForce


def workflow_of(desk: CallContext, type_: str) -> tuple[str, str]:
    """The workflow of a type, which has its name, and its newest version: the newest in use, or else the newest that is archived."""
    name = checked_key(type_, "type")
    program = desk.registry.library.known(desk.tenant, name)
    machine = None if program is None else program.decider
    if program is None or not isinstance(machine, GraphMachine) or machine.graph.document is None:
        raise NotFoundError("document type", name, hint="publish the workflow of its contract first")
    return name, program.definition_version


def active_workflow(desk: CallContext, type_: str) -> tuple[str, str]:
    """The workflow that a new document of a type begins with: what was published last of a contract or a body, or was registered by code.

    It is looked up each time: what is archived in one process begins in none.
    """
    name = checked_key(type_, "type")
    found_ = desk.reader.in_force(name)
    if found_ is None:
        _check_open(desk, name)
        return workflow_of(desk, name)
    _check_kept(name, found_)
    workflow = _in_use(desk, name, found_) if found_.is_suspended else found_.workflow
    _check_open(desk, name, workflow)
    program = desk.registry.library.program(desk.tenant, name, workflow)
    assert program is not None, "what is in force is published"
    assert isinstance(program.decider, GraphMachine)
    spec = program.decider.graph.document
    problem = None if spec is None else start_problem(spec.compiler_version)
    if problem is not None:
        raise refused(BlueprintRefusal.WORKFLOW_COMPILER_STALE, problem.message)
    return name, workflow


def check_in_use(desk: CallContext, name: str, workflow: str) -> None:
    """RejectedError if a workflow is out of use, so that documents neither begin with it nor are moved to it. One that another has replaced is in use."""
    _check_open(desk, name, workflow)
    found = desk.reader.in_force(name)
    if found is not None:
        _check_kept(name, found)
    rows = desk.service.survey(lambda parts: parts.blueprints().suspensions(desk.tenant, name))
    last = next((each for each in reversed(rows) if each.workflow == workflow), None)
    if last is not None and last.is_suspended:
        told = f"{last.set_by!r} has taken the workflow {workflow!r} of {name!r} out of use: {last.why}"
        raise refused(BlueprintRefusal.WORKFLOW_SUSPENDED, f"{told}; put it back, or name another one")


def _check_kept(name: str, found: InForce) -> None:
    if found.status == "archived":
        told = f"all workflows of {name!r} are archived, so no document of it begins; publish a body"
        raise refused(BlueprintRefusal.WORKFLOW_ARCHIVED, told)


def _check_open(desk: CallContext, name: str, workflow: str = "") -> None:
    """RejectedError if somebody has archived the workflow as a definition, or, without one, if all workflows of the type are archived."""
    library = desk.registry.library
    closed = library.set_aside(desk.tenant, name, workflow) if workflow else library.closed(desk.tenant, name)
    if closed:
        raise RejectedError(reason=Refusal.ARCHIVED.value, message=closed)


def _in_use(desk: CallContext, name: str, found: InForce) -> str:
    """The workflow that stands in for one that is taken out of use: the one before it, of the same owner."""
    workflow = desk.reader.stand_in(name, found)
    if not workflow:
        told = f"the workflow {found.workflow!r} of {name!r} is taken out of use, and there is none before it"
        raise refused(BlueprintRefusal.WORKFLOW_SUSPENDED, f"{told}; publish another one, or put it back")
    return workflow
