"""Handlers that are registered by name, or with their decider: what they are given, and what is said of those that cannot take it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from standfast import ConfigurationError, Decision, EffectContext, Moment, Saga, SagaDefinition
from standfast.graph.compiler import graph_bytes
from standfast.testing import ManualEngine
from support.engines import Place
from support.samples import Act, Answer, Do, Ledger, Noted, Notes, Order, Puppet, Shop, act


def mailing(state: Notes, command: Do, moment: Moment) -> Answer:
    """Write it down, and have it mailed unless it is an answer to that."""
    decision = Decision.event(Noted(command.what))
    return decision if command.what.startswith("done") else decision.with_effect(Act(command.what), handler="mailer")


class Mailer:
    """Handles effects."""

    def handle(self, context: EffectContext, effect: Act) -> Do:
        return Do("p-1", f"done {effect.what} {context.attempt}")


def mail(context: EffectContext, effect: Act) -> Do:
    """Handles effects too."""
    return Mailer().handle(context, effect)


async def mail_later(context: EffectContext, effect: Act) -> Do:
    """Handles them in its own time."""
    return Mailer().handle(context, effect)


def mail_by_place(context: EffectContext, effect: Act, /) -> Do:
    """Does not name what it takes."""
    return Mailer().handle(context, effect)


@pytest.mark.parametrize("mailer", [mail, mail_later, mail_by_place, Mailer()])
def test_an_effect_may_name_its_handler(place: Place, mailer: object) -> None:
    """Such an effect goes to the handler of that name, with its context and its body; what comes back is a command."""
    engine = place.engine().register(Puppet(mailing)).handle("mailer", mailer)
    engine.deciders.execute(Puppet, Do("p-1", "hello"))
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("hello", "done hello 1")


def test_steps_and_effects_may_share_a_handler(place: Place) -> None:
    """What arrives says how the handler is called."""
    ledger = Ledger()
    engine = place.engine().register(Puppet(mailing))
    engine.handle("mailer", lambda context, effect: ledger.add(effect))
    engine.register(Saga("s").step("a", "mailer").build())
    engine.deciders.execute(Puppet, Do("p-1", "hello"))
    engine.start("s", {"effect": "by name"})
    engine.drain()
    assert sorted(map(str, ledger.entries)) == ["Act(what='hello')", "by name"]


@pytest.mark.parametrize("mailer", [lambda data: None, lambda: None])
def test_a_handler_that_cannot_take_an_effect_says_so_at_once(place: Place, mailer: object) -> None:
    """It was made for steps: the effect gives up without another call, and its letter says what is needed."""
    engine = place.engine().register(Puppet(mailing)).handle("mailer", mailer)
    engine.deciders.execute(Puppet, Do("p-1", "hello"))
    engine.drain()
    (letter,) = engine.dead_letters.list()
    assert letter.attempts == 1
    assert "'mailer'" in letter.error
    assert "(context, effect)" in letter.error


def test_a_handler_that_cannot_take_a_step_says_so_at_once(place: Place) -> None:
    """It was made for effects: parameters that have no names cannot be found in the data."""
    engine = place.engine().handle("mailer", mail_by_place)
    instance = engine.register(Saga("s").step("a", "mailer").build()).start("s").id
    engine.drain()
    found = engine.run(instance).describe()
    assert (found.status, engine.run(instance).steps()[0].retry_count) == ("failed", 0)
    assert "positional-only" in found.error


def three(context: object, effect: object, more: object) -> None:
    """Takes too much."""


@pytest.mark.parametrize("wrong", [lambda effect: None, lambda: None, three, Shop, 7])
def test_the_handler_of_a_decider_takes_two_arguments(wrong: Any) -> None:
    """What cannot be called with context and effect is refused when it is registered, not by dead letters."""
    with pytest.raises(ConfigurationError, match="'order'"):
        ManualEngine().register(Order(), wrong)


@pytest.mark.parametrize(
    "right", [lambda context, effect: None, lambda context, effect, more=1: None, lambda *both: None, print]
)
def test_any_way_of_taking_two_arguments_will_do(right: Any) -> None:
    """Defaults, and functions that do not tell their parameters, are not in the way: the effect is handled."""
    engine = ManualEngine().register(Puppet(act), right)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    found = engine.deciders.get(Puppet, "p-1")
    assert (found.state, found.effects, engine.dead_letters.list()) == (("x",), [], [])


def bare(function: Callable[..., object]) -> Callable[..., object]:
    """A decorator that hides what it decorates."""

    def wrapper(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    return wrapper


def polite(function: Callable[..., object]) -> Callable[..., object]:
    """A decorator that shows what it decorates."""

    @functools.wraps(function)
    def wrapper(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    return wrapper


def test_a_decorator_must_not_hide_the_parameters() -> None:
    """A handler that would be given nothing because it takes anything is refused; the remedy is named."""

    def reserve(sku: str) -> str:
        return f"one {sku}"

    with pytest.raises(ConfigurationError, match=r"functools\.wraps"):
        ManualEngine().register(Saga("s").step("a", bare(reserve)).build())
    engine = ManualEngine().register(Saga("s").step("a", polite(reserve)).build())
    instance = engine.start("s", {"sku": "lamp"}).id
    engine.drain()
    assert engine.run(instance).result() == {"sku": "lamp", "a": "one lamp"}


SHIPPING = Saga("shipping").step("ship", "puppet").build()
UNSHIPPING = Saga("shipping").step("ship", "mailer").on_failure("unship", "puppet").build()


@pytest.mark.parametrize("saga", [SHIPPING, UNSHIPPING])
def test_a_step_cannot_name_the_handler_of_a_decider(place: Place, saga: SagaDefinition) -> None:
    """It would be given a step in place of its effects: that is refused, whichever of the two is registered last."""
    expected = "'shipping' .* the handler 'puppet', which handles the effects of the decider 'puppet'"
    engine = place.engine().register(Puppet(mailing), mail)
    with pytest.raises(ConfigurationError, match=expected):
        engine.register(saga)
    with pytest.raises(ConfigurationError, match=expected):
        engine.definitions.publish(graph_bytes(saga.graph))
    other = place.engine().register(saga)
    with pytest.raises(ConfigurationError, match=expected):
        other.register(Puppet(mailing), mail)
    other.register(Puppet(mailing))


@pytest.mark.parametrize("mailer", [mail, mail_later])
def test_a_step_that_meets_the_handler_of_a_decider_fails_without_a_call(place: Place, mailer: Any) -> None:
    """Where another process published the steps nobody could refuse them: the step says whose handler it has named."""
    place.engine().register(SHIPPING)
    engine = place.engine().register(Puppet(mailing), mailer)
    instance = engine.start("shipping").id
    engine.drain()
    found = engine.run(instance).describe()
    assert (found.status, engine.run(instance).steps()[0].retry_count) == ("failed", 0)
    assert "the handler 'puppet' is that of the decider 'puppet' and takes no steps" in found.error
