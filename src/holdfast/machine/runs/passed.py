"""What data has to do with questions to people: those that were decided were decided on it, and those to come may depend on it.

So it takes the right to override people to give a run other data behind a question, and to change what says whether one is asked, or whom.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from holdfast.expressions import Expression
from holdfast.expressions.tree import variables
from holdfast.kernel.decision import Rejection
from holdfast.kernel.facts import asks_fact
from holdfast.machine.graphs.asks import RULE
from holdfast.machine.graphs.graph import Call, Condition, Edge, Human, Join, Script, Split
from holdfast.machine.graphs.index import DATA, WORKFLOW, GraphIndex
from holdfast.machine.runs.law import OVERRIDE
from holdfast.machine.runs.namespaces import CONTEXT
from holdfast.machine.runs.refusals import Refusal, refused
from holdfast.machine.runs.state import State, Step
from holdfast.machine.runs.turn import Turn

ALL = "*"
"""Among the names that something reads: all of them."""


def other_data_refusal(turn: Turn, names: Iterable[str]) -> Rejection | None:
    """Return why an actor may not change these names of a run's data: people decided on it, or are asked by it, and the actor may not override them."""
    actor = turn.moment.actor
    if actor.may(OVERRIDE):
        return None
    decided = decisions_passed(turn, turn.state)
    if not decided:
        return deciding_data_refusal(turn, names)
    told = f"{', '.join(map(repr, decided))} was decided on the data as it is, and {actor.id!r} may not override that"
    remedy = f"fork the run where it is still open, so that it is asked again, or have somebody with {OVERRIDE!r} do it"
    return refused(Refusal.NOT_ALLOWED, f"{told}; {remedy}")


def deciding_data_refusal(turn: Turn, names: Iterable[str]) -> Rejection | None:
    """Return why an actor may not give names of the data other values: they say whether people are asked ahead, or whom."""
    actor, state = turn.moment.actor, turn.state
    given = set(names)
    if not given or actor.may(OVERRIDE):
        return None
    places = [each.node for each in (*state.tokens.values(), *state.parked.values())]
    read = read_for_people(turn.routes, places or [turn.routes.graph.entry])
    for step in state.open.values():  # What people see of the data is what they decide on.
        if isinstance(turn.routes.node(step.node).op, Human):
            read |= _read_by(turn.routes, turn.routes.expressions(step.node))
    found = sorted(given) if ALL in read else sorted(given & read)
    if not found:
        return None
    told = f"{', '.join(map(repr, found))} of the data says whether people are asked, whom, or about what, and {actor.id!r} may not decide that"
    return refused(Refusal.NOT_ALLOWED, f"{told}; have somebody with {OVERRIDE!r} do it")


def read_for_people(routes: GraphIndex, places: Iterable[str]) -> set[str]:
    """The names of the data by which it is decided, from these places on, whether people are asked and whom; `ALL` if somebody is found by all of it."""
    out, into = defaultdict[str, list[Edge]](list), defaultdict[str, list[str]](list)
    for edge in routes.graph.edges:
        out[edge.source].append(edge)
        into[edge.target].append(edge.source)
    ahead = _led_to({name: [edge.target for edge in edges] for name, edges in out.items()}, places)
    people = [name for name in ahead if isinstance(routes.node(name).op, Human)]
    leading = _led_to(into, people)
    found: set[str] = set()
    for name in ahead & leading:
        op = routes.node(name).op
        if isinstance(op, Human):
            found |= _read_by(routes, routes.people_rules(name))
            found |= {ALL} if op.chain or any(not each.is_direct and each.by != RULE for each in op.all_asks) else set()
        if isinstance(op, Condition | Split | Script | Join):
            found |= _read_by(routes, routes.expressions(name))
        for edge in out[name]:
            found |= _read_by(routes, routes.of_edge(edge))
    return found


def _read_by(routes: GraphIndex, expressions: Iterable[Expression]) -> set[str]:
    """The names of the data that expressions read. What a process calls `input` is what an answer brings, and no data yet."""
    roots = {CONTEXT, DATA, WORKFLOW} - ({DATA} if routes.graph.kind == "process" else set())
    paths = [each.path for expression in expressions for each in variables(expression.tree) if each.path[0] in roots]
    return {ALL if len(path) == 1 else str(path[1]) for path in paths}


def _led_to(ways: Mapping[str, list[str]], places: Iterable[str]) -> set[str]:
    found, waiting = set[str](), [each for each in places if each]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += ways.get(name, ())
    return found


def approvals_passed(routes: GraphIndex, state: State) -> list[str]:
    """The questions to people that a run has left behind: with other data they are void, and have to be asked again."""
    return list(dict.fromkeys(node for node in nodes_passed(state) if isinstance(routes.node(node).op, Human)))


class Called(NamedTuple):
    """A definition that a run calls."""

    definition: str
    version: str
    """Empty for the newest one."""


def decisions_passed(turn: Turn, state: State) -> list[str]:
    """The same, with the calls that a run has left behind whose workflows ask people."""
    calls = calls_passed(turn.routes, state)
    asking = (node for node, called in calls.items() if turn.fact(asks_fact(*called)).value)
    return list(dict.fromkeys((*approvals_passed(turn.routes, state), *asking)))


def calls_passed(routes: GraphIndex, state: State) -> dict[str, Called]:
    """The calls of other workflows that a run has left behind, by the names of their nodes."""
    ops = {node: routes.node(node).op for node in nodes_passed(state)}
    return {node: Called(op.definition, op.version) for node, op in ops.items() if isinstance(op, Call)}


def nodes_passed(state: State) -> Iterator[str]:
    """The nodes that were entered and left, as far as the state remembers them."""
    yield from (each.node for each in state.executed.values())
    present = Counter((step.token, step.node) for step in under_way(state))
    for token in (*state.tokens.values(), *state.parked.values()):
        yield from (node for node, count in token.visits.items() if count > present[token.id, node])


def under_way(state: State) -> list[Step]:
    """The steps of a run that have not ended, in the order in which they began: these are asked for again."""
    steps = [*state.open.values(), *state.dead.values(), *state.frozen.values()]
    return sorted(steps, key=lambda step: step.number)
