"""What it means to be asked to end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from standfast.app.signals import GracefulShutdown


@contextmanager
def unharmed() -> Iterator[None]:
    """Handlers of the test run itself are there again afterwards, whatever happens."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
        assert {number: signal.getsignal(number) for number in before} == before
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_the_first_signal_begins_it_and_sigterm_again_changes_nothing() -> None:
    """It begins once; from then on SIGINT does what it does by itself, and afterwards everything is as it was."""
    heard: list[str] = []
    with unharmed(), GracefulShutdown(lambda: heard.append("begun")) as departure:
        assert not departure.has_begun
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        assert (heard, signal.getsignal(signal.SIGINT)) == (["begun"], signal.SIG_DFL)
        assert signal.getsignal(signal.SIGTERM) not in {signal.SIG_IGN, signal.SIG_DFL}


def test_what_is_nested_ends_as_a_whole() -> None:
    """A signal is heard by both, whichever is there; one that came before the inner one ends it as soon as it is there."""
    heard: list[str] = []
    with unharmed(), GracefulShutdown(lambda: heard.append("outer")) as outer:
        with GracefulShutdown(lambda: heard.append("inner")):
            signal.raise_signal(signal.SIGINT)
        assert (sorted(heard), outer.has_begun) == (["inner", "outer"], True)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
        signal.raise_signal(signal.SIGTERM)
        with GracefulShutdown(lambda: heard.append("late")) as late:
            assert (heard[-1], late.has_begun) == ("late", True)
        assert len(heard) == 3
