"""Effects: work that a decision asks for, done after the commit by a handler."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import Decision, EffectContext, Fail, Failure, Moment, Rejection, Retry, RetryPolicy, Settings
from standfast.kernel.ids import WorkerId
from standfast.store.ports.store import Store
from standfast.store.records.instances import Wanted, Word
from support.engines import Place
from support.samples import (
    END,
    Act,
    Answer,
    Do,
    Doll,
    Ledger,
    Noted,
    Notes,
    Order,
    OrderState,
    Puppet,
    Shop,
    act,
    done,
    note,
)
from support.samples import Place as PlaceOrder

MINUTE = timedelta(minutes=1)
THRICE = RetryPolicy(max_attempts=3, delay=MINUTE, backoff="fixed", jitter=0)


class Script:
    """A handler that does one thing after the other: raises what is an exception, returns what is not."""

    def __init__(self, *steps: Do | Exception | None) -> None:
        self._steps = list(steps)
        self.calls: list[EffectContext] = []

    def handle(self, context: EffectContext, effect: Act) -> Do | None:
        self.calls.append(context)
        step = self._steps.pop(0) if self._steps else None
        if isinstance(step, BaseException):
            raise step
        return step


@pytest.mark.row("D-048")
def test_an_effect_survives_the_process_that_asked_for_it(place: Place) -> None:
    """An effect is part of the commit: another process finds it and runs it."""
    place.engine().register(Order()).deciders.execute(Order, PlaceOrder("o-1", 5))
    shop = Shop()
    place.engine().register(Order(), shop).drain()
    assert shop.ledger.entries == ["Charge", "Deliver"]


@pytest.mark.row("D-048")
def test_a_command_that_fails_leaves_no_effect(place: Place) -> None:
    """What is rolled back asks for nothing."""

    class Breaking(Puppet):
        type = "breaking"

        def evolve(self, state: Notes, event: Noted) -> Notes:
            raise ValueError("no")

    ledger = Ledger()
    engine = place.engine().register(Breaking(act), lambda context, effect: ledger.add(effect))
    assert engine.futures.deciders.execute(Breaking, Do("p-1", "x")).exception() is not None
    engine.drain()
    assert ledger.entries == []
    assert engine.admin.backlog() == []


@pytest.mark.row("D-049")
def test_effects_are_run_one_after_the_other_by_one_worker(place: Place) -> None:
    """Each step of a worker claims one effect and runs its handler to the end."""
    ledger = Ledger()
    engine = place.engine().register(Puppet(act), lambda context, effect: ledger.add(effect))
    for number in (1, 2):
        engine.deciders.execute(Puppet, Do(f"p-{number}", str(number)))
        place.clock.move(timedelta(seconds=1))
    assert engine.execute_next()
    assert ledger.entries == [Act("1")]
    assert engine.execute_next()
    assert not engine.execute_next()
    assert ledger.entries == [Act("1"), Act("2")]


@pytest.mark.row("D-050")
def test_a_handler_that_returns_nothing_ends_its_effect(place: Place) -> None:
    """The effect is used up and never run again."""
    script = Script(None)
    engine = place.engine().register(Puppet(act), script)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    engine.advance(hours=24)
    assert len(script.calls) == 1
    assert engine.deciders.get(Puppet, "p-1").effects == []


@pytest.mark.row("D-051", "EC-28", "G-24")
@pytest.mark.row("C-50")
def test_a_returned_command_is_executed_with_the_end_of_the_effect(place: Place) -> None:
    """The result's event and the effect's end are one commit, caused by the effect."""
    script = Script(Do("p-1", "done x"))
    engine = place.engine().register(Puppet(act), script)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    found = engine.deciders.get(Puppet, "p-1")
    assert (found.state, found.effects) == (("x", "done x"), [])
    assert found.history[-1].cause == script.calls[0].idempotency_key


@pytest.mark.row("E-471", "E-494", "E-495")
@pytest.mark.row("D-052", "D-119")
@pytest.mark.row("C-34")
def test_a_failing_effect_is_tried_again_with_waits_and_then_buried(place: Place) -> None:
    """Attempts, last error and next attempt are on the row; after the last attempt it is a dead letter and stays one."""
    script = Script(*[ValueError(f"no {number}") for number in range(1, 9)])
    engine = place.engine().register(Puppet(act), script, retry=THRICE)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    (row,) = engine.deciders.get(Puppet, "p-1").effects
    assert (row.attempts, row.error, row.next_attempt_at) == (1, "ValueError: no 1", place.clock.now() + MINUTE)
    engine.advance(timedelta(seconds=59))
    assert len(script.calls) == 1
    engine.advance(hours=24)
    assert [call.attempt for call in script.calls] == [1, 2, 3]
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.attempts, letter.error) == ("effect", 3, "ValueError: no 3")
    assert (letter.reason, letter.definition, letter.type) == ("handler_failed", "puppet", "Act")


@pytest.mark.row("D-052")
def test_the_default_policy_backs_off_and_gives_up_after_five_calls(place: Place) -> None:
    """Without a policy of its own an effect is called five times, with growing waits."""
    script = Script(*[ValueError("no")] * 9)
    engine = place.engine().register(Puppet(act), script)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    begun, at = place.clock.now(), []
    while engine.deciders.get(Puppet, "p-1").effects:
        engine.advance(seconds=1)
        at.append((place.clock.now() - begun).total_seconds())
    assert len(script.calls) == 5
    assert 15 <= at[-1] <= 18, "1 + 2 + 4 + 8 seconds, and up to a tenth more"


@pytest.mark.row("D-053", "D-078", "EC-09")
@pytest.mark.row("C-33")
def test_an_effect_whose_worker_died_runs_again(place: Place) -> None:
    """A worker that was killed after the side effect and before the commit leaves its effect to another, after its lease."""
    first = place.engine().register(Puppet(act), done)
    first.deciders.execute(Puppet, Do("p-1", "x"))
    assert claim_and_die(first.runtime.identity, place.store) == 1
    script = Script(None)
    second = place.engine().register(Puppet(act), script)
    first.runtime.heartbeat.step()
    second.drain()
    assert script.calls == []
    second.advance(seconds=7)
    assert [call.attempt for call in script.calls] == [2]


def claim_and_die(worker: WorkerId, store: Store) -> int:
    """Take all effects of the puppet for a worker that will never finish them; how many."""
    return len(store.effects().claim(worker, [Wanted("puppet", 9)], 9, words=[Word("puppet", "Act", 1)]))


@pytest.mark.row("D-054", "EC-09")
def test_the_idempotency_key_is_stable_and_unique(place: Place) -> None:
    """All attempts of one effect carry the same key, and no other effect has it."""
    script = Script(ValueError("no"), ValueError("no"), None, None)
    engine = place.engine().register(Puppet(act), script, retry=THRICE)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(hours=1)
    engine.deciders.execute(Puppet, Do("p-1", "y"))
    engine.drain()
    keys = [call.idempotency_key for call in script.calls]
    assert len(keys) == 4
    assert keys[0] == keys[1] == keys[2] != keys[3]


@pytest.mark.row("D-056")
def test_a_retrying_effect_does_not_hold_back_the_next(place: Place) -> None:
    """Effects of one instance have no order among them: the second runs while the first waits for its retry."""
    ledger = Ledger()

    def handle(context: EffectContext, effect: object) -> None:
        ledger.add(effect)
        if effect == Act("first") and context.attempt == 1:
            raise ValueError("later")

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted("x")).with_effect(Act("first")).with_effect(Act("second"))

    engine = place.engine().register(Puppet(choose), handle, retry=THRICE)
    engine.deciders.execute(Puppet, Do("p-1"))
    engine.drain()
    assert ledger.entries == [Act("first"), Act("second")]
    engine.advance(MINUTE)
    assert ledger.entries == [Act("first"), Act("second"), Act("first")]


@pytest.mark.row("D-057")
@pytest.mark.parametrize("transactional", [False, True])
def test_a_result_that_cannot_be_executed_fails_the_effect(place: Place, transactional: bool) -> None:  # noqa: FBT001 - a parameter
    """When the decider fails on the result, the work of the handler is not done again unless an operator wants it to be."""
    is_broken = [True]

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what != "done":
            return Decision.event(Noted(command.what)).with_effect(Act(command.what), transactional=transactional)
        if is_broken:
            raise ValueError("broken")
        return note(state, command, moment)

    script = Script(Do("p-1", "done"), Do("p-1", "done"))
    engine = place.engine().register(Puppet(choose), script, retry=THRICE)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(hours=1)
    (letter,) = engine.dead_letters.list()
    assert (len(script.calls), letter.attempts, letter.reason) == (1, 1, "decider_failed")
    assert "raised ValueError('broken')" in letter.error
    is_broken.clear()
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert len(script.calls) == 2
    assert engine.deciders.state(Puppet, "p-1") == ("x", "done")


@pytest.mark.row("D-021")
@pytest.mark.parametrize("transactional", [False, True])
def test_a_result_that_is_rejected_is_an_outcome(place: Place, transactional: bool) -> None:  # noqa: FBT001 - a parameter
    """The decider said no: another call would come to the same, so there is none, and the letter has the decider's code."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "done":
            return Rejection(code="too_late", message="the shop is closed")
        return Decision.event(Noted(command.what)).with_effect(Act(command.what), transactional=transactional)

    script = Script(Do("p-1", "done"), Do("p-1", "done"))
    engine = place.engine().register(Puppet(choose), script, retry=THRICE)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(hours=1)
    (letter,) = engine.dead_letters.list()
    assert (len(script.calls), letter.attempts, letter.reason) == (1, 1, "too_late")
    assert "the shop is closed" in letter.error


@pytest.mark.row("D-058")
def test_effects_of_an_instance_that_ended_still_run(place: Place) -> None:
    """Their results are skipped without a word, and the effects are used up."""
    script = Script(Do("p-1", "done"))
    choose = Puppet(lambda s, c, m: Decision.event(Noted(END)) if c.what == END else act(s, c, m))
    engine = place.engine().register(choose, script)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.deciders.execute(Puppet, Do("p-1", END))
    engine.drain()
    found = engine.deciders.get(Puppet, "p-1")
    assert (len(script.calls), found.state, found.effects) == (1, ("x", END), [])
    assert engine.dead_letters.list() == []


@pytest.mark.row("D-059")
def test_an_effect_without_a_handler_waits_untouched(place: Place) -> None:
    """A process without the handler neither loses the effect nor burns its attempts; one that has it runs it."""
    place.engine().register(Puppet(act)).deciders.execute(Puppet, Do("p-1", "x"))
    stranger = place.engine().register(Doll(act), done)
    stranger.advance(hours=24)
    keen = place.engine().register(Puppet(act), script := Script(None))
    (row,) = keen.deciders.get(Puppet, "p-1").effects
    assert (row.attempts, row.error) == (0, "")
    keen.drain()
    assert [call.attempt for call in script.calls] == [1]


@pytest.mark.row("E-471", "E-787", "ED-15", "EC-17")
@pytest.mark.row("D-060")
def test_dead_effects_are_listed_and_put_back_to_work(place: Place) -> None:
    """An operator sees what gave up, has it tried again with its attempts reset, or forgets it."""
    script = Script(Fail("no"), None, Fail("never"))
    engine = place.engine().register(Puppet(act), script)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert [call.attempt for call in script.calls] == [1, 1]
    assert engine.dead_letters.list() == []
    engine.deciders.execute(Puppet, Do("p-1", "y"))
    engine.drain()
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.discard(letter.id)
    assert engine.dead_letters.list() == []


@pytest.mark.row("D-060")
def test_dead_letters_belong_to_their_tenant(place: Place) -> None:
    """One tenant neither sees nor requeues what another tenant's effect left behind."""
    engine = place.engine().register(Puppet(act), Script(Fail("no")))
    engine.as_tenant("acme").deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    (letter,) = engine.as_tenant("acme").dead_letters.list()
    assert engine.dead_letters.list() == []
    assert engine.futures.dead_letters.requeue(letter.id).exception() is not None
    assert engine.futures.dead_letters.discard(letter.id).exception() is not None
    assert len(engine.as_tenant("acme").dead_letters.list()) == 1


@pytest.mark.row("D-124")
def test_a_result_may_be_for_another_instance_of_the_type(place: Place) -> None:
    """A returned command goes to the instance that it names; the effect it came from is used up."""
    engine = place.engine().register(Puppet(act), Script(Do("p-2", "done")))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("x",)
    assert engine.deciders.state(Puppet, "p-2") == ("done",)
    assert engine.deciders.get(Puppet, "p-1").effects == []


@pytest.mark.row("G-06")
def test_fail_gives_up_at_once(place: Place) -> None:
    """A handler that says that trying again cannot help is not called again."""
    engine = place.engine().register(Puppet(act), script := Script(Fail("never")), retry=THRICE)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(hours=1)
    assert len(script.calls) == 1
    assert [letter.reason for letter in engine.dead_letters.list()] == ["handler_failed"]


def test_retry_says_when(place: Place) -> None:
    """A handler may name the wait itself; without a wait the policy does."""
    steps = (Retry("busy", after=timedelta(hours=2)), Retry(), None)
    engine = place.engine().register(Puppet(act), script := Script(*steps), retry=THRICE)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    (row,) = engine.deciders.get(Puppet, "p-1").effects
    assert (row.error, row.next_attempt_at) == ("Retry: busy", place.clock.now() + timedelta(hours=2))
    engine.advance(hours=2)
    assert len(script.calls) == 2
    engine.advance(MINUTE)
    assert len(script.calls) == 3


def test_an_instance_can_be_told_that_its_effect_gave_up(place: Place) -> None:
    """With `effect_failed` the instance gets a command in the commit that ends the effect, and there is no dead letter."""

    class Told(Puppet):
        type = "told"

        def effect_failed(self, effect: Act, failure: Failure) -> Do:
            return Do("p-1", f"done without {effect.what}: {failure.error}")

    engine = place.engine().register(Told(act), Script(Fail("no")))
    engine.deciders.execute(Told, Do("p-1", "x"))
    engine.drain()
    assert engine.deciders.state(Told, "p-1") == ("x", "done without x: Fail: no")
    assert engine.dead_letters.list() == []


@pytest.mark.parametrize("key", ["", "p-1", "p-2"])
def test_bad_news_is_for_the_instance_that_asked(place: Place, caplog: pytest.LogCaptureFixture, key: str) -> None:
    """`effect_failed` may leave the key out; if it names another instance nobody is told, and the effect is a dead letter."""

    class Misled(Puppet):
        type = "misled"

        def effect_failed(self, effect: Act, failure: Failure) -> Do:
            return Do(key, "done")

    engine = place.engine().register(Misled(act), Script(Fail("no")))
    engine.deciders.execute(Misled, Do("p-1", "x"))
    engine.drain()
    if key == "p-2":
        assert engine.deciders.state(Misled, "p-1") == ("x",)
        assert [(each.source, each.error) for each in engine.dead_letters.list()] == [("effect", "Fail: no")]
        assert "the failure command of 'misled' for an effect" in caplog.text
        assert "names 'p-2'" in caplog.text
    else:
        assert engine.deciders.state(Misled, "p-1") == ("x", "done")
        assert engine.dead_letters.list() == []
    assert [each.key for each in engine.instances.list()] == ["p-1"]


@pytest.mark.parametrize("takes_plain", [True, False])
def test_bad_news_that_a_decider_cannot_take_is_told_once_more_in_plain_words(
    place: Place, *, takes_plain: bool
) -> None:
    """As final, without the wait that was asked for; if that does not go down either, the effect is a dead letter with its own error."""

    class Touchy(Puppet):
        type = "touchy"

        def effect_failed(self, effect: Act, failure: Failure) -> Do:
            return Do("p-1", f"done: {failure.error}" if failure.is_final and failure.after is None else "odd")

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "odd" or (command.what.startswith("done") and not takes_plain):
            raise ValueError("what is this?")
        return act(state, command, moment)

    asking = Retry("later", after=5)
    engine = place.engine().register(Touchy(choose), Script(asking), retry=RetryPolicy(max_attempts=1))
    engine.deciders.execute(Touchy, Do("p-1", "x"))
    engine.drain()
    notes, letters = engine.deciders.state(Touchy, "p-1"), engine.dead_letters.list()
    if takes_plain:
        assert notes[1].startswith("done: Fail: Retry: later (as it was, this could not be recorded: ")
        assert letters == []
    else:
        assert notes == ("x",)
        assert [(each.source, each.error) for each in letters] == [("effect", "Retry: later")]


def optional(**options: object) -> Puppet:
    """A puppet whose effects carry options."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision if command.what.startswith("done") else decision.with_effect(Act(command.what), **options)

    return Puppet(choose)


@pytest.mark.row("D-052")
@pytest.mark.parametrize("limit", [1, 3])
def test_a_letter_counts_the_calls_that_were_made(place: Place, limit: int) -> None:
    """The claim that finds out that an effect killed its worker in every call makes no call, and does not count."""
    policy = RetryPolicy(max_attempts=limit, delay=timedelta(0), jitter=0)
    engine = place.engine().register(Puppet(act), script := Script(), retry=policy)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    for _ in range(limit):
        victim = place.engine()
        victim.drain()
        assert claim_and_die(victim.runtime.identity, place.store) == 1
        place.engine().advance(hours=1)
    engine.drain()
    (letter,) = engine.dead_letters.list()
    assert (letter.reason, letter.attempts, script.calls) == ("attempts_spent", limit, [])


@pytest.mark.row("ED-21", "EC-16")
def test_an_effect_with_once_is_called_at_most_once(place: Place) -> None:
    """It is not tried again, neither after a failure nor after its worker died; it becomes a dead letter instead."""
    engine = place.engine().register(optional(once=True), script := Script(ValueError("no")), retry=THRICE)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(hours=1)
    assert len(script.calls) == 1
    engine.deciders.execute(Puppet, Do("p-1", "y"))
    assert claim_and_die(engine.runtime.identity, place.store) == 1
    other = place.engine().register(optional(once=True), other_script := Script(), retry=THRICE)
    other.advance(hours=1)
    assert other_script.calls == []
    letters = other.dead_letters.list()
    assert [letter.reason for letter in letters] == ["handler_failed", "attempts_spent"]
    assert "never came back" in letters[1].error


def test_a_delayed_effect_waits(place: Place) -> None:
    """An effect with a delay runs that long after its commit, not earlier."""
    engine = place.engine().register(optional(delay=MINUTE), script := Script(None))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(timedelta(seconds=59))
    assert script.calls == []
    engine.advance(timedelta(seconds=1))
    assert len(script.calls) == 1


def test_an_effect_may_have_a_policy_of_its_own(place: Place) -> None:
    """The effect's policy counts before the handler's, and the handler's before the engine's."""
    engine = place.engine(Settings(retry=RetryPolicy(max_attempts=9)))
    own = RetryPolicy(max_attempts=2, delay=MINUTE, jitter=0)
    engine.register(optional(retry=own), script := Script(*[ValueError("no")] * 9), retry=THRICE)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(hours=1)
    assert len(script.calls) == 2


def test_urgent_effects_are_claimed_first_and_waiting_counts(place: Place) -> None:
    """The higher priority goes first; an effect that has waited long enough overtakes a more urgent newcomer."""
    ledger = Ledger()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(command.what)).with_effect(Act(command.what), priority=int(command.what))

    engine = place.engine(Settings(ageing=1.0)).register(
        Puppet(choose), lambda context, effect: ledger.add(effect.what)
    )
    engine.deciders.execute(Puppet, Do("p-1", "5"))
    place.clock.move(timedelta(seconds=10))
    for what in ("0", "10", "100"):
        engine.deciders.execute(Puppet, Do(f"p-{what}", what))
    engine.drain()
    assert ledger.entries == ["100", "5", "10", "0"]


@pytest.mark.row("ED-15")
def test_an_effect_can_be_withdrawn(place: Place) -> None:
    """A decision may take back effects that have not been done; they never run."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "stop":
            return Decision((Noted("stop"),), withdrawn_effects=(0, 77))
        return Decision.event(Noted("x")).with_effect(Act("a")).with_effect(Act("b"))

    engine = place.engine().register(Puppet(choose), script := Script())
    engine.deciders.execute(Puppet, Do("p-1"))
    engine.deciders.execute(Puppet, Do("p-1", "stop"))
    engine.drain()
    assert [call.number for call in script.calls] == [1]


def test_the_context_says_what_a_handler_needs(place: Place) -> None:
    """Instance, tenant, type, attempt, deadline, cancellation and a logger that names them."""
    engine = place.engine().register(
        Puppet(act),
        script := Script(None),
        timeout=MINUTE,
    )
    engine.as_tenant("acme").deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    (context,) = script.calls
    assert (context.tenant, context.decider, context.number, context.attempt) == ("acme", "puppet", 0, 1)
    assert context.deadline == place.clock.now() + MINUTE
    assert not context.cancelled
    assert context.logger.extra is not None
    assert context.logger.extra["instance"] == str(context.instance)


def test_a_transactional_effect_writes_with_its_end_or_not_at_all(place: Place) -> None:
    """The handler gets the open connection: its writes and the result's event are one commit, exactly once."""
    made = "create table ledger (what text)"

    def handle(context: EffectContext, effect: object) -> Do:
        context.connection.execute("insert into ledger values ('done')")
        if context.attempt == 1:
            raise ValueError("after the write")
        return Do("p-1", "done")

    engine = place.engine().register(optional(transactional=True), handle, retry=THRICE)
    with place.store.writer().unit() as unit, unit.lend() as connection:
        connection.execute(made)  # type: ignore[attr-defined]
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert written(place.store) == 0
    engine.advance(MINUTE)
    assert written(place.store) == 1
    assert engine.deciders.state(Puppet, "p-1") == ("x", "done")


def written(store: Store) -> int:
    """How many rows the transactional handler wrote."""
    with store.writer().unit() as unit, unit.lend() as connection:
        row = connection.execute("select count(*) from ledger").fetchone()  # type: ignore[attr-defined]
    return int(row[0])


def test_a_whole_order_needs_no_more_than_its_commands(place: Place) -> None:
    """The chain of effects leads an order to its end without anybody's help."""
    engine = place.engine().register(Order(), Shop())
    for number in range(5):
        engine.deciders.execute(Order, PlaceOrder(f"o-{number}", number))
    engine.drain()
    assert [engine.deciders.state(Order, f"o-{number}") for number in range(5)] == [
        OrderState("shipped", number) for number in range(5)
    ]
    assert engine.admin.backlog() == []


def test_an_effect_whose_end_nobody_takes_is_buried(place: Place) -> None:
    """When the instance refuses the command that tells it of the end, the effect is a dead letter like any other."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Rejection(code="no", message="no") if command.what == "it failed" else act(state, command, moment)

    class Deaf(Puppet):
        type = "deaf"

        def effect_failed(self, effect: Act, failure: Failure) -> Do:
            return Do("p-1", "it failed")

    engine = place.engine().register(Deaf(choose), Script(Fail("no luck")))
    engine.deciders.execute(Deaf, Do("p-1", "x"))
    engine.drain()
    assert engine.deciders.state(Deaf, "p-1") == ("x",)
    assert [letter.error for letter in engine.dead_letters.list()] == ["Fail: no luck"]
    assert engine.admin.backlog() == []


@pytest.mark.row("G-03")
def test_an_answer_that_comes_too_late_is_a_failed_attempt(place: Place) -> None:
    """A plain function cannot be stopped in time, but what it brings back after its limit does not count."""
    late = Script(Do("p-1", "done too late"))
    at_once = RetryPolicy(max_attempts=1)
    engine = place.engine().register(Puppet(act), late, timeout=timedelta(microseconds=1), retry=at_once)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert len(late.calls) == 1
    assert engine.deciders.state(Puppet, "p-1") == ("x",)
    assert ["no answer within" in letter.error for letter in engine.dead_letters.list()] == [True]
