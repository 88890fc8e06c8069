"""What steps of a document do to other documents of the tenant: by the same commands as everybody, in the commit that ends the step."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from standfast.calls.context import CallContext, checked_key
from standfast.engine.commit.unit_of_work import JointCommit
from standfast.engine.common.handlers import EffectContext, Fail
from standfast.errors import ConfigurationError, NotFoundError, PayloadError, RejectedError, StandfastError
from standfast.features.documents.content.reads import FoundDocument, known_from
from standfast.features.documents.publishing.active_version import active_workflow, workflow_of
from standfast.features.documents.writes import (
    address_of,
    called,
    changes_of,
    judge,
    looks_up,
    made_id,
    spec_of,
)
from standfast.graph.document_checks import actions_of
from standfast.graph.document_spec import DocumentAction
from standfast.kernel.actor import SYSTEM, Actor, RequestContext, late_request
from standfast.kernel.codec.type_cache import settled
from standfast.machine.model.commands.document_commands import CreateDocument, Mutate
from standfast.machine.model.commands.run_commands import CompleteStep, RunStep

Data = dict[str, object]


class DocumentActionTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a step wants done."""

    type: str
    id: str
    action: str
    payload: Data
    is_new: bool
    actor: Actor
    reason: str
    undo: str = ""
    """The action that takes it back, which is done without asking anybody for a right: so it is asked for now."""
    origin: str = ""
    depth: int = 1
    asked: str = ""
    """The request of the actor, if they have asked for the transition: what they may do now is looked up by it."""


class DocumentActions:
    """Carries it out. What another document refuses has failed the step for good: nothing that it wrote stands."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def run(self, context: EffectContext, body: object) -> object:
        """Carry out what a step wants done; the receipt is the answer of the step."""
        assert isinstance(body, RunStep)
        assert isinstance(context.connection, JointCommit)
        if body.is_compensation and body.output is None:
            return CompleteStep(step=body.step)  # It had failed, and so had changed nothing.
        errand = msgspec.convert(body.input, settled(DocumentActionTask))
        actor = _undoing(errand.actor) if body.is_compensation else errand.actor
        if actor.kind == "system":
            actor = replace(SYSTEM, on_behalf_of=actor.on_behalf_of) if actor.on_behalf_of else SYSTEM
        is_asked = errand.asked and not body.is_compensation
        request = late_request(errand.asked) if is_asked else RequestContext(actor=actor)
        desk = self._desk.acting(
            replace(
                request,
                tenant=context.tenant,
                trace=context.trace,
                partition=context.partition,
                is_late=actor.kind == "user",
            )
        )
        try:
            receipt = _Deed(desk, context, context.connection, errand).do()
        except (RejectedError, NotFoundError, PayloadError, ConfigurationError) as error:
            raise Fail(_told(errand, error)) from error
        return CompleteStep(step=body.step, output=receipt)


def _undoing(actor: Actor) -> Actor:
    """As whom a step is undone: the engine, on behalf of whoever it was done for. Nobody's right is asked for; it was when the step acted."""
    name = actor.on_behalf_of or ("" if actor.kind == "system" else actor.id)
    return Actor(id=SYSTEM.id, kind="system", on_behalf_of=name)


class _Deed:
    def __init__(
        self, desk: CallContext, context: EffectContext, joint: JointCommit, errand: DocumentActionTask
    ) -> None:
        self._desk, self._context, self._joint, self._errand = desk, context, joint, errand
        self._name, _ = workflow_of(desk, errand.type)

    def do(self) -> Data:
        """Do it; the receipt."""
        errand = self._errand
        action = actions_of(spec_of(self._desk, self._name)).get(errand.action)
        if action is not None and action.creates:
            return self._create(action)
        if errand.is_new:
            told = f"{errand.action!r} creates no document of the type {errand.type!r}; name the document with `target`"
            raise PayloadError(told)
        return self._mutate()

    def _create(self, action: DocumentAction) -> Data:
        errand = self._errand
        place = (self._name, str(self._context.instance))
        key = checked_key(errand.id, "document id", may_be_empty=True) or made_id(
            self._desk, place, self._context.idempotency_key
        )
        command = CreateDocument(
            data=errand.payload,
            action=errand.action,
            undo=errand.undo,
            reason=errand.reason,
            origin=errand.origin,
            depth=errand.depth,
            looks_up=looks_up(self._desk),
        )
        if action.handler:
            raise ConfigurationError(
                f"{errand.action!r} has a handler, which a step cannot have called; take another action"
            )
        _, version = active_workflow(self._desk, self._name)
        self._carry_out(key, command, may_create=True, definition_version=version)
        return self._receipt(key, 0)

    def _mutate(self) -> Data:
        errand = self._errand
        key = checked_key(errand.id, "document id")
        known = self._known(key)
        if known.header.id == self._context.instance:
            raise PayloadError("the target is the document itself; leave `target` out")
        command = Mutate(
            action=errand.action,
            undo=errand.undo,
            payload=errand.payload,
            reason=errand.reason,
            origin=errand.origin,
        )
        handler = known.parts.actions[errand.action].handler if errand.action in known.parts.actions else ""
        if handler:
            command = self._computed(known, command, handler)
        self._carry_out(key, command)
        return self._receipt(key, known.document.version)

    def _computed(self, known: FoundDocument, command: Mutate, name: str) -> Mutate:
        """The command with what the handler of the action makes of it, which is called with the open transaction."""
        host = self._desk.directory.changes_unseen  # That one is not asked about steps on other documents.
        judge(self._desk if host else self._desk.with_roles(), known, command)
        handler = self._desk.service.shared.handlers.find(name)
        if handler is None:
            raise RuntimeError(f"the handler {name!r} of {command.action!r} is not registered in this process")
        with self._joint.lend(self._desk.tenant) as connection:
            output = called(self._desk, known, command, handler=handler, connection=connection)
        return msgspec.structs.replace(command, changes=changes_of(output, command.action))

    def _carry_out(
        self, key: str, command: CreateDocument | Mutate, *, may_create: bool = False, definition_version: str = ""
    ) -> None:
        self._joint.carry_out(
            address_of(self._desk, self._name, key),
            command,
            by=self._desk.by,
            comment=command.reason,
            may_create=may_create,
            definition_version=definition_version,
        )

    def _known(self, key: str) -> FoundDocument:
        tracked = self._joint.look(address_of(self._desk, self._name, key))
        if tracked is None:
            raise NotFoundError("document", f"{self._name}/{key}")
        return known_from(tracked)

    def _receipt(self, key: str, before: int) -> Data:
        document = self._known(key).document
        return {
            "type": self._name,
            "id": key,
            "action": self._errand.action,
            "status": document.status,
            "version_before": before,
            "version_after": document.version,
        }


def _told(errand: DocumentActionTask, error: StandfastError) -> str:
    code = error.reason if isinstance(error, RejectedError) else error.code
    return f"{errand.type}.{errand.action} of {errand.id or 'a new document'} is refused ({code}): {error}"
