"""What is paused, for those who ask and those who pause: who may, what there is to pause, how much a pause holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from standfast.calls.context import CallContext
from standfast.calls.operator_views import Hold, PauseInfo
from standfast.calls.references import checked_decider, checked_definition
from standfast.engine.commit.limits import check_key
from standfast.engine.common.pauses import holds_call
from standfast.engine.worker.pause_filter import step_of
from standfast.errors import ForbiddenError, NotFoundError, PayloadError
from standfast.graph.model import CallOp, HumanOp, Node, NotificationOp
from standfast.kernel.actor import RequestContext
from standfast.kernel.decider import Decider
from standfast.kernel.decision import NOT_ALLOWED
from standfast.machine.model.state import RunState
from standfast.store.ports.pauses import ALL_TENANTS, HeldCount, PauseRecord, PauseScope
from standfast.store.records.instances import InstanceHeader, InstanceQuery
from standfast.store.records.queries import ArchivedVersion, PublishedDefinition
from standfast.store.sql.pause_propagation import SETTLED


def permitted(request: RequestContext, what: str, tenant: str) -> None:
    """ForbiddenError unless the actor may pause, or resume, what is this tenant's; its own if none is named."""
    actor, capability = request.actor, f"execution:{what}"
    if not actor.may(capability):
        raise ForbiddenError(
            reason=NOT_ALLOWED,
            message=f"{actor.id!r} may not {what} anything: that needs the capability {capability!r}",
        )
    if tenant not in {"", request.tenant} and actor.kind != "system":
        raise ForbiddenError(
            reason=NOT_ALLOWED, message=f"{actor.id!r} may {what} what is of tenant {request.tenant!r} and no other"
        )


def named(definition: object, version: str | int) -> tuple[str, str]:
    """The name of what is to be paused, and the version if one is meant. A finished workflow stands for all of its versions."""
    if version:
        check_key(str(version), "version")
    if definition == "":
        return "", str(version)
    if isinstance(definition, Decider) or (isinstance(definition, type) and issubclass(definition, Decider)):
        return checked_decider(definition), str(version)
    name, _ = checked_definition(definition)
    return name, str(version)


def check_known(desk: CallContext, scope: PauseScope) -> None:
    """NotFoundError if there is nothing by these names: a pause of a misspelt name would hold nothing, and nobody would notice."""
    if not scope.definition:
        return
    owners, library = {scope.tenant, ALL_TENANTS}, desk.registry.library
    whose = desk.tenant if scope.tenant == ALL_TENANTS else scope.tenant
    # Runs of an archived version go on, so it can be paused.
    listed: list[PublishedDefinition | ArchivedVersion] = [*library.listed(whose), *library.archived(whose)]
    versions = [each for each in listed if each.name == scope.definition and each.tenant in owners]
    if not versions:
        if scope.version or scope.step or not _is_decider(desk, scope):
            told = f"{scope.definition} version {scope.version}" if scope.version else scope.definition
            known = ", ".join(sorted({each.name for each in listed})) or "none"
            raise NotFoundError("definition", told, hint=f"published are: {known}")
        return
    chosen = [each.version for each in versions if scope.version in {"", each.version}]
    if not chosen:
        told = ", ".join(each.version for each in versions)
        raise NotFoundError("version", scope.version, hint=f"{scope.definition!r} has: {told}")
    if scope.step:
        _check_step(desk, scope, chosen)


def _check_step(desk: CallContext, scope: PauseScope, versions: Sequence[str]) -> None:
    tenant = desk.tenant if scope.tenant == ALL_TENANTS else scope.tenant
    graphs = [desk.registry.library.graph(tenant, scope.definition, each) for each in versions]
    nodes = [node for graph in graphs for node in graph.nodes.values()]
    found = [each for each in nodes if each.id == scope.step]
    if not found:
        known = ", ".join(sorted({each.id for each in nodes}))
        raise NotFoundError("step", scope.step, hint=f"{scope.definition!r} has: {known}")
    if not any(_is_held(each) for each in nodes if scope.is_about(each.id)):
        raise PayloadError(_unheld(found[-1]))


def _is_held(node: Node) -> bool:
    """Whether a pause of a step holds what it does: a call, that which undoes it included. A run that it starts is of another definition."""
    is_calling = node.op.call is not None or node.compensation is not None or isinstance(node.op, NotificationOp)
    return is_calling and not isinstance(node.op, CallOp)


def _unheld(node: Node) -> str:
    """Why a pause of a step would hold nothing, and what to pause instead."""
    if isinstance(node.op, CallOp):
        other = node.op.definition
        return f"{node.id!r} starts a run of {other!r}, which no pause of a step holds: pause {other!r}, whose runs do nothing then"
    does = (
        "asks people, whose answers are taken"
        if isinstance(node.op, HumanOp)
        else f"is a {node.op.word}, which calls nothing"
    )
    return f"a pause of {node.id!r} would hold nothing: it {does}; pause the step behind it that calls something, or the definition"


def _is_decider(desk: CallContext, scope: PauseScope) -> bool:
    """Whether the code here has such a decider, or instances of one are stored that the code elsewhere has."""
    if desk.registry.is_decider(scope.definition):
        return True
    query = InstanceQuery(definition=scope.definition, limit=1)
    return bool(desk.reader.instances(query))


class Paused:
    """The pauses as they are now, and what they hold."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def standing(self) -> list[PauseRecord]:
        """Those that hold work back, oldest first."""
        found = self._desk.service.survey(lambda parts: parts.pauses().standing())
        return [each for each in found if each.stands]

    @cached_property
    def _counts(self) -> list[HeldCount]:
        """Looked up once, because each held row is counted."""
        return self._desk.service.survey(lambda parts: parts.pauses().counts())

    def one(self, number: int, may_see: Callable[[PauseRecord], bool]) -> PauseInfo:
        """A pause by its number; NotFoundError if there is none that the caller may see."""
        found = self._desk.service.survey(lambda parts: parts.pauses().get(number))
        if found is None or not may_see(found):
            raise NotFoundError("pause", number)
        whose = ALL_TENANTS if self._desk.request.actor.kind == "system" else self._desk.tenant
        return self.shown(found, whose)

    def shown(self, pause: PauseRecord, tenant: str = ALL_TENANTS) -> PauseInfo:
        """A pause as callers see it; what it holds of a tenant, or of all."""
        counts = [each for each in self._counts if _is_about(pause, each) and tenant in {each.tenant, ALL_TENANTS}]
        scope = pause.scope
        if scope.step and counts:
            effects, timers = self._of_step(pause, tenant), 0
        else:
            effects, timers = sum(each.effects for each in counts), sum(each.timers for each in counts)
        return PauseInfo(
            id=pause.id,
            tenant=scope.tenant,
            definition=scope.definition,
            version=scope.version,
            step=scope.step,
            clock=pause.clock,
            reason=pause.reason,
            paused_by=pause.paused_by,
            paused_at=pause.paused_at,
            until=pause.until,
            ended_at=pause.ended_at,
            ended_by=pause.ended_by,
            ended_why=pause.ended_why,
            held_effects=effects,
            held_timers=timers,
            is_settled=pause.walks >= SETTLED,
        )

    def _of_step(self, pause: PauseRecord, tenant: str) -> int:
        """Which step an effect is of stands in its data alone, so each is looked at."""
        scope = pause.scope
        whose = scope.tenant if tenant == ALL_TENANTS else tenant
        found = self._desk.service.survey(lambda parts: parts.pauses().held_effects(whose, scope.definition))
        languages = self._desk.service.shared.languages
        return sum(
            pause.covers(each.tenant, each.definition, each.definition_version)
            and scope.is_about(step_of(languages, each))
            for each in found
        )


def _is_about(pause: PauseRecord, count: HeldCount) -> bool:
    return pause.covers(count.tenant, count.definition, count.version)


def holds_on(desk: CallContext, header: InstanceHeader, state: RunState) -> list[Hold]:
    """The pauses that hold up a run, as far as this process knows: those of all of it, and those of a step that it is at."""
    service = desk.service
    if not service.has_threads:
        service.watch.look_again()
    if header.ended_at is not None or not service.standing.pauses:
        return []
    steps = {each.node for each in state.open.values()} or {""}
    return [
        Hold(
            pause=each.id,
            scope=str(each.scope),
            paused_by=each.paused_by,
            paused_at=each.paused_at,
            reason=each.reason,
            until=each.until,
        )
        for each in service.standing.over(header)
        if any(holds_call([each], step) for step in steps)
    ]


def may_end(desk: CallContext, hold: Hold) -> bool:
    """Whether somebody of the calls' tenant can end a pause: one of all tenants is the engine's own."""
    pauses = {each.id: each for each in desk.service.standing.known}
    is_of_all = hold.pause in pauses and pauses[hold.pause].scope.tenant == ALL_TENANTS
    return not is_of_all or desk.request.actor.kind == "system"


def told(holds: Sequence[Hold]) -> str:
    """Pauses that hold up a run, in a sentence; empty if there are none."""
    said = [f"{each.scope}, by {each.paused_by!r} since {each.paused_at.isoformat()}" for each in holds]
    return f"what is paused holds it up ({'; '.join(said)}): pauses.resume ends a pause" if said else ""
