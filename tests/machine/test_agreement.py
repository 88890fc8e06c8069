"""What several people have to agree on: each rule by its cases, and all of them against a reference that is written another way."""

from __future__ import annotations

from random import Random
from typing import Literal, NamedTuple, get_args

import pytest

from machine.hosting import Host
from standfast import Saga
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph, graph_bytes, read_graph
from standfast.graph.values.approver_rules import AGREES, Agree, Ask
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Decision
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.events import StepAnswered
from support.campaigns import SEED

CASES = 500
Word = Literal["approved", "rejected", "abstained"]
WORDS: tuple[Word, ...] = get_args(Word)


def asking(weights: list[int], agree: Agree | None, least: int = 0, **fields: object) -> Host:
    """A run that waits for people of these weights: `p0`, `p1` and so on."""
    asks = tuple(Ask(by="user", of=f"p{place}", weight=weight) for place, weight in enumerate(weights))
    op = g.HumanOp(outcomes=(*WORDS, "returned"), asks=asks, agree=agree, least=least, **fields)  # type: ignore[arg-type]
    nodes = [g.Node(id="ask", op=op), *(g.Node(id=name, op=g.EndOp()) for name in ("yes", "no", "back"))]
    ways = (("approved", "yes"), ("rejected", "no"), ("returned", "back"))
    edges = [g.Edge(source="ask", target=target, on=on) for on, target in ways]
    host = Host(
        compile_graph(
            kind="process", name="g", version="1", entry="ask", nodes=nodes, edges=edges, policies=g.Policies()
        )
    )
    host.tell(c.StartWorkflow())
    return host


def human(saga: Saga) -> g.HumanOp:
    """What the question of a saga asks, as it is built."""
    op = saga.build().graph.nodes["ok"].op
    assert isinstance(op, g.HumanOp)
    return op


def vote(host: Host, place: int, word: str) -> None:
    """One of them decides; it must be taken."""
    answer = host.tell(c.AnswerStep(step=1, outcome=word), Actor(id=f"p{place}"))
    assert isinstance(answer, Decision)


def came_to(host: Host) -> str:
    """What the question came to, with its reason; empty while it is open."""
    told = [event for event in host.history if isinstance(event, StepAnswered)]
    return " ".join(each for each in (told[0].outcome, told[0].reason) if each) if told else ""


STORIES: dict[str, tuple[Agree, int, list[str], str]] = {
    "any: the first approval is enough": ("any", 0, ["approved"], "approved"),
    "any: one rejection is not the end": ("any", 0, ["rejected"], ""),
    "any: another one may still approve": ("any", 0, ["rejected", "rejected", "approved"], "approved"),
    "any: when nobody is left it is rejected": ("any", 0, ["rejected", "abstained", "rejected"], "rejected"),
    "all: everybody has to approve": ("all", 0, ["approved", "approved"], ""),
    "all: they all did": ("all", 0, ["approved", "approved", "approved"], "approved"),
    "all: the first rejection ends it": ("all", 0, ["rejected"], "rejected"),
    "all: an abstention does not stand in the way": ("all", 0, ["approved", "abstained", "approved"], "approved"),
    "all: abstentions alone are no approval": ("all", 0, ["abstained"] * 3, "rejected all_abstained"),
    "2 of 3: the second approval completes it": ("n", 2, ["approved", "approved"], "approved"),
    "2 of 3: two rejections are too many": ("n", 2, ["rejected", "rejected"], "rejected"),
    "2 of 3: abstentions put it out of reach": ("n", 2, ["abstained", "abstained"], "rejected all_abstained"),
    "2 of 3: one for it, and nobody left to join": (
        "n",
        2,
        ["approved", "abstained", "abstained"],
        "rejected out_of_reach",
    ),
    "another outcome ends it at once": ("all", 0, ["returned"], "returned"),
}


@pytest.mark.row("E-670")
@pytest.mark.row("E-676")
@pytest.mark.row("E-677")
@pytest.mark.row("E-678")
@pytest.mark.parametrize("story", STORIES)
def test_three_people_agree(story: str) -> None:
    """Approvals, rejections and abstentions of three people come to what their rule says, and no sooner."""
    agree, least, words, expected = STORIES[story]
    host = asking([1, 1, 1], agree, least)
    for place, word in enumerate(words):
        assert came_to(host) == ""
        vote(host, place, word)
    assert came_to(host) == expected


def test_weights_are_added_up() -> None:
    """Whoever weighs enough decides alone, and the light ones only together."""
    host = asking([5, 2, 3], "weight", 5)
    vote(host, 0, "approved")
    assert came_to(host) == "approved"
    host = asking([5, 2, 3], "weight", 5)
    vote(host, 0, "rejected")
    assert came_to(host) == ""
    vote(host, 1, "approved")
    vote(host, 2, "approved")
    assert came_to(host) == "approved"
    host = asking([5, 2, 3], "weight", 6)
    vote(host, 0, "abstained")
    assert came_to(host) == "rejected all_abstained"


@pytest.mark.row("E-677")
def test_a_list_of_people_has_to_agree_and_one_of_a_role_is_enough() -> None:
    """Where nothing is said, all of a list decide, and of one role whoever is the first."""
    assert g.HumanOp(asks=(Ask(by="user", of="a"), Ask(by="user", of="b"))).agreement == "all"
    assert g.HumanOp(asks=(Ask(by="user", of="a"), Ask(by="role", of="b"))).agreement == "all"
    for names in (["role:a", "role:b"], ["role:a", "user:b"], ["user:a", "user:b"]):
        assert human(Saga("spend").human("ok", ask=names)).agreement == "all"
        assert human(Saga("spend").human("ok", ask=names, agree="any")).agreement == "any"
    assert human(Saga("spend").human("ok", ask=["role:a"])).agreement == "any"
    assert g.HumanOp(asks=(Ask(by="role", of="a", pick="all"),)).agreement == g.HumanOp(role="a").agreement == "any"


def test_a_stored_list_of_roles_keeps_its_meaning() -> None:
    """A graph that was stored without a rule takes any of several roles, whatever a new definition would store."""
    old = g.HumanOp(asks=(Ask(by="role", of="a"), Ask(by="role", of="b")))
    parts = {"kind": "saga", "name": "spend", "version": "1", "entry": "ok", "edges": [], "policies": g.Policies()}
    stored = read_graph(graph_bytes(compile_graph(nodes=[g.Node(id="ok", op=old)], **parts)))  # type: ignore[arg-type]
    assert stored.nodes["ok"].op == old
    assert old.agreement == "any"


class Poll(NamedTuple):
    """A question with the votes that come in, in their order."""

    weights: list[int]
    agree: Agree
    least: int
    votes: list[tuple[int, Word]]


def random_poll(seed: str) -> Poll:
    """People of random weights who vote at random."""
    rng = Random(seed)
    weights = [rng.randint(1, 4) for _ in range(rng.randint(2, 6))]
    agree = rng.choice(AGREES)
    most = {"n": len(weights), "weight": sum(weights)}.get(agree, 0)
    order = rng.sample(range(len(weights)), len(weights))
    return Poll(weights, agree, rng.randint(1, most) if most else 0, [(place, rng.choice(WORDS)) for place in order])


def reference(poll: Poll, cast: int) -> str:
    """What the first votes have settled: what is the same however the others vote. No rule is asked, all endings are tried."""
    known, open_ = poll.votes[:cast], [place for place, _ in poll.votes[cast:]]
    endings: set[str] = set()
    for number in range(3 ** len(open_)):
        rest = [(place, WORDS[number // 3**digit % 3]) for digit, place in enumerate(open_)]
        votes = [*known, *rest]
        yes = [place for place, word in votes if word == "approved"]
        vetoed = any(word == "rejected" for _, word in votes)
        reached = sum(poll.weights[place] for place in yes) if poll.agree == "weight" else len(yes)
        needed = poll.least or 1
        endings.add("approved" if reached >= needed and not (poll.agree == "all" and vetoed) else "rejected")
    return endings.pop() if len(endings) == 1 else ""


@pytest.mark.parametrize("part", range(10))
def test_random_votes_come_to_what_cannot_change_any_more(part: int) -> None:
    """A question ends with the vote after which the others cannot change its end, by that end, and not before."""
    for number in range(part, CASES, 10):
        poll = random_poll(f"{SEED}:{number}")
        host = asking(poll.weights, poll.agree, poll.least)
        for place, (person, word) in enumerate(poll.votes):
            vote(host, person, word)
            expected = reference(poll, place + 1)
            assert came_to(host).split(" ")[0] == expected, (poll, place)
            if expected:
                break
        assert came_to(host)
