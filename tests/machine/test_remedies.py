"""What a run would accept: every operation that is recommended is taken and changes something, and no state is a dead end.

STANDFAST_SEED=7 STANDFAST_GRAPHS=100000 .venv/bin/pytest tests/machine/test_remedies.py -k dead_end runs another campaign.
"""

from __future__ import annotations

from random import Random

import pytest

from machine.generating import random_graph, random_limit
from machine.hosting import RUN, Host
from machine.playing import Act, DisagreementError, Play, play_at_random
from standfast.kernel.codec.codecs import JsonCodec
from standfast.kernel.decision import Decision, Rejection
from standfast.kernel.moment import Moment
from standfast.kernel.program import Program
from standfast.machine.model.state import RunState
from standfast.machine.remedies import AcceptedOperation, OperationTrials, all_of, command_of
from support.campaigns import GRAPHS, SEED

SHARES = 4
ENDS = frozenset({"cancel", "abort"})


class Watched(Play):
    """A play that is looked at after every act."""

    def act(self, act: Act) -> None:
        """Do one thing; raises DisagreementError if something is recommended that is not so, or nothing at all."""
        super().act(act)
        state = self.host.state
        if state.status != "new" and not state.is_terminal:
            check(self.host)


def check(host: Host) -> None:
    """Try everything that the run says it would accept, on a state that is made from its history."""
    state, moment = host.state, moment_of(host)
    found = all_of(OperationTrials(Program(host.machine, JsonCodec()), state, moment))
    for each in found:
        answer = host.machine.decide(copy := folded(host), command_of(each, copy), moment)
        if isinstance(answer, Rejection) and answer.code == "reason_required":
            continue  # Whoever rejects says why.
        if not isinstance(answer, Decision) or not answer.events:
            raise DisagreementError(f"{each} is recommended, and is answered by {answer}")
    if waits_for_operator(state) and not any(brings_on(each) for each in found):
        raise DisagreementError(
            f"nothing brings it on: {state.status} ({state.reason}): {state.error}; there are {found}"
        )


def brings_on(remedy: AcceptedOperation) -> bool:
    """Whether an operation does more than to end the run, or to come to the same again."""
    return remedy.operation not in ENDS and not remedy.is_vain


def waits_for_operator(state: RunState) -> bool:
    """Whether nothing but an operator brings a run on. A run whose dropped branch could not be undone goes on, and waits for one at its end."""
    is_halted = state.rollback is not None and state.rollback.stuck is not None
    return state.status == "paused" or bool(state.dead) or is_halted


def moment_of(host: Host) -> Moment:
    """The moment at which an operator would do something."""
    return Moment(
        now=host.now,
        instance=RUN,
        key=host.key,
        version=host.version,
        issued=host.issued,
        commits=host.commits,
        pending_timers=dict(host.due),
    )


def folded(host: Host) -> RunState:
    """The state as the history tells it."""
    state = host.machine.initial()
    for event in host.history:
        state = host.machine.evolve(state, event)
    return state


def play(seed: str) -> None:
    """One graph; a failure tells its seed."""
    rng = Random(seed)
    graph = random_graph(rng)
    watched = Watched(graph, random_limit(rng, graph))
    try:
        play_at_random(watched, rng)
    except DisagreementError as error:
        pytest.fail(f"seed {seed}, after {watched.acts}: {error}", pytrace=False)


@pytest.mark.timeout(max(120, GRAPHS))
@pytest.mark.parametrize("share", range(SHARES))
def test_no_state_is_a_dead_end(share: int) -> None:
    """After every command of every schedule, what is recommended would be taken, and a run that waits for an operator can be brought on."""
    for number in range(share, GRAPHS // 5, SHARES):
        play(f"{SEED}/{number}")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(10))
def test_a_campaign_of_dead_ends(share: int) -> None:
    """The same for ten thousand graphs."""
    for number in range(share, 10_000, 10):
        play(f"long {SEED}/{number}")
