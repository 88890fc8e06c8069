"""Tests that an organisation writes for its own workflow: each is played, and what did not come out as it should is told in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

import msgspec

from standfast.errors import Diagnostic
from standfast.features.documents.body.scenario_format import Scenario, ScenarioAction
from standfast.features.documents.contract.ids import local_name
from standfast.features.simulation import MOST_COMMANDS, EndlessError, Simulator, TraceEntry
from standfast.graph.model import Graph
from standfast.graph.source_files.values import milliseconds
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Rejection
from standfast.kernel.facts import SETTINGS_FACT, DocumentFact, Fact, FactKey, SupposedFacts
from standfast.machine.model.commands.document_commands import CreateDocument, Mutate, RequestTransition

REQUESTER: Final = "requester"
FAILED: Final = "scenario"
"""The code of a scenario that does not come out as it should."""
_ACTS: Final = ("ask", "decide", "edit", "event", "wait")
MOST_TOGETHER: Final = 50_000
"""Commands of all scenarios of a body, as the machine decides them: a few seconds, or a minute where lists are long."""
_TOGETHER: Final = f"the scenarios take more than {MOST_TOGETHER} commands together, and this one came last; shorten their lists, or drop some"
_LAST: Final = 12
"""Nodes that the account of a failure names: the last ones are where it went wrong."""


class ScenarioResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a scenario."""

    name: str
    faults: list[str]
    """What did not come out as it should, each in a sentence."""
    trail: list[TraceEntry]
    """The nodes that the document came through."""
    status: str
    """What the document was in the end; empty if it was never created."""

    @property
    def is_passed(self) -> bool:
        """Whether it came out as it should."""
        return not self.faults

    def account(self) -> str:
        """What went wrong, and which way the document took."""
        way = " → ".join(f"{each.node} ({each.outcome})" if each.outcome else each.node for each in self.trail[-_LAST:])
        return f"{'; '.join(self.faults)}. The way was: {way or 'none'}"


def run_scenario(graph: Graph, scenario: Scenario) -> ScenarioResult:
    """Play a scenario on the graph of a compiled workflow."""
    (result,) = run_scenarios(graph, [scenario])
    return result


def run_scenarios(graph: Graph, scenarios: Iterable[Scenario], *, most: int = MOST_TOGETHER) -> list[ScenarioResult]:
    """Play scenarios one after the other, as far as they do not cost too much together: whoever publishes waits for them."""
    results, left = list[ScenarioResult](), most
    for each in scenarios:
        played = _Play(graph, each, most=min(left, MOST_COMMANDS))
        results.append(played.result(is_last=left < MOST_COMMANDS))
        left -= min(left, played.stage.commands)
    return results


def failures(results: list[ScenarioResult]) -> list[Diagnostic]:
    """The scenarios that failed, each with its account."""
    return [
        Diagnostic(FAILED, f"the scenario {each.name!r} does not come out as it should: {each.account()}", each.name)
        for each in results
        if not each.is_passed
    ]


class _Supposed(SupposedFacts):
    """The settings and the other documents that a scenario supposes. Of a field without an id, the document is called as the field is."""

    def __init__(self, stage: Simulator, scenario: Scenario) -> None:
        super().__init__({SETTINGS_FACT: dict(scenario.org)})
        self._stage = stage
        self._related = scenario.related

    def get(self, key: FactKey) -> Fact:
        """Returns a fact."""
        document, index = self._stage.document, self._stage.machine.routes.documents
        if key.kind != "document" or document is None or index is None:
            return super().get(key)
        for field, known in self._related.items():
            if field in index.spec.fields and (index.spec.fields[field].of, document.data.get(field)) == key[1:]:
                content = {name: value for name, value in known.items() if name not in {"status", "version"}}
                fact = DocumentFact(
                    type=key.of,
                    id=key.name,
                    status=str(known.get("status", "")),
                    version=int(str(known.get("version", 1))),
                    data=content,
                )
                return Fact(fact, 1)
        return super().get(key)


class _Play:
    """One scenario under way."""

    def __init__(self, graph: Graph, scenario: Scenario, *, most: int) -> None:
        self._scenario = scenario
        self.stage = Simulator(graph, answers=scenario.answers, failing=scenario.failing, name=local_name, most=most)
        self.stage.facts = _Supposed(self.stage, scenario)

    def result(self, *, is_last: bool) -> ScenarioResult:
        """Play it, and tell what came of it; if it `is_last`, there is less left for it than for one that is alone."""
        try:
            faults = self.run()
        except EndlessError:
            faults = [_TOGETHER if is_last else "it does not come to an end: something goes round in circles"]
        document = self.stage.document
        status = "" if document is None else document.status
        return ScenarioResult(name=self._scenario.name, faults=faults, trail=self.stage.trail, status=status)

    def run(self) -> list[str]:
        """Play it; what did not come out as it should."""
        told = self._scenario
        command = CreateDocument(data={**{field: field for field in told.related}, **told.data})
        refusal = self.stage.say(command, self._player(REQUESTER))
        if refusal is not None:
            return [f"the document cannot be created: {refusal.message} [{refusal.code}]"]
        for number, act in enumerate(self._scenario.acts, 1):
            wrong = self._perform(act)
            if wrong:
                return [f"act {number}: {wrong}"]
        return list(self._differences())

    def _player(self, name: str) -> Actor:
        known = self._scenario.people.get(name)
        if known is None:
            return Actor(id=name, capabilities=frozenset({"*"} if name == REQUESTER else ()))
        return Actor(id=name, roles=frozenset(known.roles), capabilities=frozenset(known.capabilities))

    def _perform(self, act: ScenarioAction) -> str:
        """What is wrong with an act, or with what came of it; empty if nothing is."""
        said = [name for name in _ACTS if getattr(act, name) is not None]
        if len(said) != 1:
            return f"an act is one of {', '.join(_ACTS)}, and this one says {' and '.join(said) or 'nothing'}"
        wrong, refusal = self._done(act)
        if wrong:
            return wrong
        if refusal is None:
            return f"it was to be refused with {act.refused!r}, and was not" if act.refused else ""
        if act.refused == refusal.code:
            return ""
        wanted = f"it was to be refused with {act.refused!r}" if act.refused else "it was refused"
        return f"{wanted}: {refusal.message} [{refusal.code}]"

    def _done(self, act: ScenarioAction) -> tuple[str, Rejection | None]:
        actor = self._player(act.by or REQUESTER)
        if act.ask is not None:
            command = RequestTransition(transition=act.ask, reason=act.reason)
            return "", self.stage.say(command, actor)
        if act.edit is not None:
            return "", self.stage.say(Mutate(payload=dict(act.edit), reason=act.reason), actor)
        if act.decide is not None:
            return self._decided(act, act.decide)
        if act.event is not None:
            is_awaited = self.stage.publish(act.event, act.payload, key=act.key)
            return "" if is_awaited else f"nobody waits for the event {act.event!r}", None
        self.stage.let_pass(timedelta(milliseconds=milliseconds(act.wait) or 0))
        return "", None

    def _decided(self, act: ScenarioAction, node: str) -> tuple[str, Rejection | None]:
        step = next((each for each in self.stage.questions if _is_named(each.node, node)), None)
        if step is None:
            asked = ", ".join(repr(local_name(each.node)) for each in self.stage.questions) or "nobody"
            return f"nobody is asked at {node!r}; asked is: {asked}", None
        by = None if act.by is None else self._player(act.by)
        return "", self.stage.answer(step, act.decision, actor=by, reason=act.reason)

    def _differences(self) -> Iterator[str]:
        """What did not come out as it should."""
        expected, document, state = self._scenario.expect, self.stage.document, self.stage.state
        assert document is not None
        if state.status == "paused" and not expected.paused:
            yield f"it waits for an operator: {state.error or state.reason}"
        if state.status != "paused" and expected.paused:
            yield "it was to wait for an operator, and does not"
        if expected.status not in {None, document.status}:
            yield f"the document was to be {expected.status!r}, and is {document.status!r}"
        for name, value in expected.data.items():
            if document.data.get(name) != value:
                yield f"{name!r} was to be {value!r}, and is {document.data.get(name)!r}"
        yield from self._way()
        if expected.asks or expected.asks_nobody:
            asked = sorted(local_name(each.node) for each in self.stage.questions)
            wanted = sorted(local_name(each) for each in expected.asks)
            if asked != wanted:
                yield f"open were to be the approvals {wanted}, and these are: {asked}"

    def _way(self) -> Iterator[str]:
        expected = self._scenario.expect
        visited = [each.node for each in self.stage.trail]
        rest = iter(visited)
        missed = next((each for each in expected.path if not any(_is_named(node, each) for node in rest)), None)
        if missed is not None:
            yield f"it was to come through {' → '.join(expected.path)}, and did not come to {missed!r} there"
        for each in expected.avoids:
            if any(_is_named(node, each) for node in visited):
                yield f"it was never to come to {each!r}, and did"


def _is_named(node: str, name: str) -> bool:
    """Whether a node is meant by a name, short or whole."""
    return name in {node, local_name(node)} or (name.startswith("usr:") and local_name(name) == node)
