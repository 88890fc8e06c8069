"""Processes: their rows, what several approvers answer, and notifications that nobody waits for."""

from __future__ import annotations

from histories.tape import Tape
from standfast import Actor, load_processes

ANN = Actor(id="ann")
BOB = Actor(id="bob", capabilities=frozenset({"orders:large"}))
CAT = Actor(id="cat", capabilities=frozenset({"orders:large"}), on_behalf_of="carl")
DAN = Actor(id="dan")

FILE = """
domain: orders
workflows:
  - id: orders.approval
    title: Order approval
    timeout: 72h
    on_timeout: late
    steps:
      - id: review
        type: approval
        assignees: [{user: bob}, {user: carl}, {user: dan}]
        agree: n
        least: 2
        form: {type: object, properties: {cents: {type: integer}}}
        operation: log
      - {id: confirm, type: system, operation: confirm, output: {at: response.at}, retry: {attempts: 1}}
      - {id: tell, type: notification, operation: mail, input: {text: "'Grüße'"}, retry: {attempts: 2}}
      - {id: done, type: terminal, outcome: approved}
      - {id: refused, type: terminal, outcome: refused}
      - {id: late, type: terminal, outcome: late}
    transitions:
      - {from: review, event: approved, to: confirm, guard: "orders:large"}
      - {from: review, event: rejected, to: refused}
      - {from: confirm, event: completed, to: tell}
      - {from: tell, event: completed, to: done}
  - id: circle
    chain_limit: 2
    steps:
      - {id: a, type: system, operation: log}
      - {id: b, type: terminal}
    transitions:
      - {from: a, event: completed, to: a}
      - {from: a, event: error, to: b}
"""


def processes(tape: Tape) -> None:
    """Several approvers, one of whom takes an answer back; a step that fails and is resumed; a notification that gives up; a circle; one that is late, and one that is cancelled."""
    fails = [True]

    def confirm() -> dict[str, str]:
        if fails.pop() if fails else False:
            raise ConnectionError("the bank is away")
        return {"at": "noon"}

    def mail(text: str) -> None:
        raise ConnectionError(f"no mail: {text}")

    for definition in load_processes(FILE):
        tape.engine.register(definition)
    tape.engine.handle("confirm", confirm)
    tape.engine.handle("mail", mail)
    tape.engine.handle("log", lambda: None)
    calls = tape.engine.acting(ANN).processes
    run = calls.start("orders.approval", {"order": "o-1"}, idempotency_key="k-1").id
    by_bob = tape.engine.acting(BOB)
    tape.engine.acting(DAN).processes.advance(run, "rejected", {"cents": 3}, comment="too dear")
    by_bob.processes.advance(run, "approved", {"cents": 1})
    by_bob.tasks.withdraw_decision(f"{run}:1", "a slip")
    by_bob.processes.advance(run, "approved", {"cents": 2}, comment="fine")
    tape.engine.acting(CAT).processes.advance(run, "approved")
    tape.drain()
    tape.engine.processes.resume(run, "it is back")
    tape.drain()
    calls.start("circle")
    tape.drain()
    calls.start("orders.approval", {"order": "o-2"})
    stopped = calls.start("orders.approval", {"order": "o-3"}).id
    by_bob.processes.advance(stopped, "approved", {"cents": 9})
    calls.cancel(stopped, "ordered twice")
    tape.engine.advance(hours=73)
    tape.drain()
