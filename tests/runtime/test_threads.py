"""Threads for plain handlers: as many as are needed, never more than allowed, never in the way of the process's end."""

from __future__ import annotations

import threading
from functools import partial
from queue import SimpleQueue

from standfast.engine.concurrency.threads import Threads
from support.samples import Gauge, Ledger
from support.waiting import arrives, eventually


def test_threads_are_made_as_needed_and_used_again() -> None:
    """One task after the other needs one thread; tasks at once need more, up to the limit."""
    threads, names = Threads(3, name="sample"), list[str]()
    for number in range(1, 6):
        threads.run(lambda: names.append(threading.current_thread().name))
        eventually(partial(is_done, threads, names, number))
    assert len(set(names)) == 1
    threads.close()


def is_done(threads: Threads, names: list[str], number: int) -> bool:
    """Whether so many tasks are done and the thread waits for the next one."""
    return len(names) == number and threads._idle > 0


def test_a_chain_of_tasks_needs_few_threads() -> None:
    """A task that asks for the next one, and may do that one itself when it has ended, leaves the others free for the one after."""
    threads, ended = Threads(20, name="sample"), threading.Event()

    def link(left: int) -> None:
        eventually(lambda: threads._idle == len(threads._threads) - 1)
        if left:
            threads.run(partial(link, left - 1))
        else:
            ended.set()

    threads.run(partial(link, 50))
    arrives(ended)
    assert len(threads._threads) <= 3  # One more if the second one was quicker than its maker.
    threads.close()


def test_a_task_never_waits_for_another_while_there_may_be_threads() -> None:
    """However the moments fall: of tasks that come one by one and wait for one another all are begun."""
    for _ in range(50):
        threads, met = Threads(4, name="sample"), threading.Barrier(4)
        for _ in range(3):
            threads.run(lambda: None)
        for _ in range(3):
            threads.run(lambda met=met: met.wait(20) and None)  # type: ignore[misc]
        met.wait(20)
        threads.close()


def test_no_more_tasks_run_than_there_are_threads() -> None:
    """The rest waits in line, and is done in the end."""
    threads, gauge, done = Threads(3, name="sample"), Gauge(), Ledger()
    full = threading.Event()

    def task() -> None:
        with gauge.inside():
            if gauge.now == 3:
                full.set()
            arrives(full)
        done.add(threading.get_ident())

    for _ in range(12):
        threads.run(task)
    eventually(lambda: len(done.entries) == 12)
    assert gauge.most == 3
    threads.close()


def test_a_thread_that_is_written_off_is_replaced_and_goes_home() -> None:
    """Another one does what it would have done; when it comes back after all there are as many as before."""
    threads, gates, done = Threads(1, name="sample", spare=1), [threading.Event() for _ in range(3)], Ledger()
    inside: SimpleQueue[int] = SimpleQueue()

    def hang(number: int) -> None:
        inside.put(threading.get_ident())
        arrives(gates[number])
        done.add(number)

    threads.run(partial(hang, 0))
    first = inside.get(timeout=20)
    threads.run(partial(hang, 1))
    threads.write_off(first)
    second = inside.get(timeout=20)
    assert (threads.lost, threads.problem()) == (1, "")
    threads.run(partial(hang, 2))
    threads.write_off(second)  # One more than there are spare ones: nobody takes its place.
    assert threads.problem() == "2 have hung past the limits of their calls; 0 of 1 are left"
    assert inside.empty()
    gates[0].set()
    inside.get(timeout=20)
    assert threads.problem() == ""
    gates[1].set()
    gates[2].set()
    eventually(lambda: sorted(map(str, done.entries)) == ["0", "1", "2"])
    eventually(lambda: (threads.lost, len(threads._threads)) == (0, 1))
    threads.close()


def test_threads_that_are_closed_take_nothing() -> None:
    """Whoever brings a task is told; what was waiting is done first, if it shall be."""
    threads, gate, done = Threads(1, name="sample"), threading.Event(), Ledger()
    threads.run(lambda: arrives(gate))
    threads.run(lambda: done.add("second"))
    gate.set()
    threads.close(20, drops=False)
    assert done.entries == ["second"]
    assert not threads.run(lambda: done.add("third"))


def test_a_task_that_fails_leaves_its_thread_alive() -> None:
    """Whatever a task raises, the next one is done."""
    threads, done = Threads(1, name="sample"), threading.Event()

    def broken() -> None:
        raise SystemExit

    threads.run(broken)
    threads.run(done.set)
    arrives(done)
    threads.close()


def test_closing_drops_what_has_not_begun_and_ends_the_threads() -> None:
    """Tasks in line are never begun; a thread that is free ends; all of them are daemons."""
    threads, gate, begun = Threads(1, name="closing"), threading.Event(), Ledger()
    threads.run(lambda: arrives(gate))
    threads.run(lambda: begun.add("second"))
    running = [thread for thread in threading.enumerate() if thread.name.startswith("closing")]
    assert all(thread.daemon for thread in running)
    threads.close()
    gate.set()
    for thread in running:
        thread.join(20)
        assert not thread.is_alive()
    assert begun.entries == []
