"""Which way a document would take: its workflow is played until it rests, and the way on is asked for wherever there is one."""

from __future__ import annotations

from standfast.features.documents.contract.ids import local_name
from standfast.features.simulation import Assumptions, DryRun, DryRunPath, SimulationTerms, Simulator
from standfast.features.simulation.dry_run import End, refused
from standfast.graph.model import Graph
from standfast.kernel.actor import Actor
from standfast.kernel.facts import SETTINGS_FACT, SupposedFacts
from standfast.machine.model.commands.document_commands import CreateDocument, RequestTransition

Data = dict[str, object]


def dry_run(
    graph: Graph,
    given: CreateDocument,
    actor: Actor,
    script: Assumptions,
    *,
    org: Data | None = None,
    terms: SimulationTerms | None = None,
) -> DryRun:
    """Play a document as far as it goes; `org` are the settings of its organisation."""
    bounds = terms or SimulationTerms()
    stage = Simulator(graph, answers=script.answers, failing=script.failing, name=local_name, **bounds)
    stage.facts = SupposedFacts({SETTINGS_FACT: org or {}})
    ends, reason = _Walk(stage, script, actor).to_end(given, actor)
    document = stage.document
    return DryRun(
        kind=graph.kind,
        ends=ends,
        status="" if document is None else document.status,
        reason=reason,
        trail=stage.trail,
        data={} if document is None else document.data,
    )


class _Walk(DryRunPath):
    """One document on its supposed way."""

    def __init__(self, stage: Simulator, script: Assumptions, actor: Actor) -> None:
        super().__init__(stage, script)
        self._actor = actor
        self._seen: set[str] = set()

    def over(self) -> End | None:
        """A document whose round is over rests."""
        document = self._stage.document
        assert document is not None
        return super().over() or (("rests", "") if document.is_resting else None)

    def onward(self) -> End | None:
        """Ask for the way on from a state; a document that comes to a state again goes round, and one that nothing leads on from rests."""
        if not self._stage.rests:
            return super().onward()
        document = self._stage.document
        assert document is not None
        index = self._stage.machine.routes.documents
        assert index is not None
        onward = [each for each in index.spec.transitions if document.status in each.sources and not each.kind]
        if not onward:
            return "rests", ""
        if document.status in self._seen:
            return "waits", f"it is {document.status!r} again, because {self._refusal()}"
        self._seen.add(document.status)
        asked = RequestTransition(transition=onward[0].name)
        refusal = self._stage.say(asked, self._actor)
        return None if refusal is None else refused(refusal)

    def _refusal(self) -> str:
        """What sent it back."""
        refused_by = [each for each in self._stage.trail if each.outcome in {"rejected", "blocked", "reject"}]
        return (
            f"{refused_by[0].node!r} was left by {refused_by[0].outcome!r}" if refused_by else "something sent it back"
        )
