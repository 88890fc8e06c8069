"""Expenses: the manager approves, finance too above 10,000, and nobody approves twice. Run it with: python3 examples/expense_approval.py

Rita hands in what she spent, and her manager is asked, whom the directory knows. After 8 hours the manager is reminded; after 24 hours a director
is asked as well. Whoever is on holiday has somebody to stand in, and both names are on the decision. Above 10,000 finance has to release
the money: not Rita, and not whoever has approved already, whatever their roles are. A week goes by in a second: the clock is the story's own.
"""

import sys
from datetime import timedelta

from standfast import Calls, Escalation, ForbiddenError, RejectedError, Run, Saga
from standfast.testing import ManualEngine

# -- The workflow: who is asked, until when, and what follows.


def pay(who: str, amount: int) -> dict[str, str]:
    return {"payment": f"{amount} to {who}"}


EXPENSE = (
    Saga("expense")
    .human(
        "manager",
        subject="{who} spent {amount} on {what}",
        ask="manager",
        self_approval=False,
        requires_reason=True,
        remind=timedelta(hours=8),
        escalate=Escalation(timedelta(hours=24), to="role:director"),
        notify="in_app",
        on_rejected=lambda way: way.notify("turned down", to="{who}", subject="Not paid: {manager.comment}"),
    )
    .human(
        "finance",
        when="amount > 10000",
        subject="Release {amount} for {who}?",
        role="finance",
        self_approval=False,
        distinct_from="manager",
        requires_reason=True,
        remind=timedelta(hours=8),
        escalate=Escalation(timedelta(hours=24), to="role:director"),
        notify="in_app",
        on_rejected=lambda way: way.notify("not released", to="{who}", subject="Not paid: {finance.comment}"),
    )
    .step("pay", pay)
    .notify("tell", to="{who}", subject="{amount} for {what} is paid")
    .build()
)


# -- The people: in the engine's database, changed by whoever keeps the directory.


def hire(engine: Calls) -> None:
    """Dora directs; Max manages Rita and Carl, and helps out in finance with Fay and Gus."""
    people = engine.directory
    people.put("dora", name="Dora Director")
    people.put("max", name="Max Manager", manager="dora")
    for name in ("rita", "carl", "fay", "gus"):
        people.put(name, manager="max")
    people.grant("dora", "director")
    for name in ("max", "fay", "gus"):
        people.grant(name, "finance")


# -- The story.


class Story:
    """Plays one day after the other, and prints what happens."""

    def __init__(self) -> None:
        self.engine = ManualEngine().register(EXPENSE)
        self.begun = self.engine.clock.now()
        hire(self.engine)

    def say(self, text: str) -> None:
        print(f"  {_clock(self.engine.clock.now() - self.begun)}  {text}")

    def chapter(self, title: str) -> None:
        print(f"\n  {title}\n")
        self.begun = self.engine.clock.now()

    def spend(self, who: str, amount: int, what: str) -> Run[object]:
        run = self.engine.acting(who).start(EXPENSE, {"who": who, "amount": amount, "what": what})
        self.engine.drain()
        self.say(f"{who} hands in {amount} for {what}")
        return run

    def wait(self, hours: float) -> None:
        self.engine.advance(hours=hours)

    def told(self, who: str) -> None:
        """Read what somebody was told and has not read."""
        desk = self.engine.acting(who).notifications
        for notice in reversed(desk.mine(unread=True)):
            self.say(f"    {who} reads: {notice.subject}")
            desk.mark_read(notice)

    def decide(self, who: str, *, yes: bool = True, comment: str = "") -> None:
        """Decide the first question in somebody's inbox."""
        tasks = self.engine.acting(who).tasks
        task = tasks.list(mine=True)[0]
        (tasks.approve if yes else tasks.reject)(task, comment=comment)
        self.engine.drain()
        last = self.engine.tasks.get(task).decisions[-1]
        names = f"{last.decided_by} for {last.on_behalf_of}" if last.on_behalf_of else last.decided_by
        self.say(f"{names} decides {task.name!r}: {last.decision}" + (f" ({comment})" if comment else ""))

    def refused(self, who: str, run: Run[object]) -> None:
        """Somebody tries to approve who may not."""
        try:
            self.engine.acting(who).tasks.approve(run.tasks()[-1])
        except (RejectedError, ForbiddenError) as error:
            self.say(f"{who} is refused: {error}")

    def end(self, run: Run[object]) -> None:
        told = run.describe()
        self.say(f"the run is {told.status}" + (f": {told.reason}, {told.error}" if told.reason else ""))


def _clock(passed: timedelta) -> str:
    return f"{passed.total_seconds() / 3600:5.1f} h"


def play() -> bool:
    story = Story()

    story.chapter("A small expense: the manager alone.")
    small = story.spend("rita", 120, "lamps")
    story.told("max")
    story.refused("rita", small)
    story.decide("max")
    story.told("rita")
    story.end(small)

    story.chapter("A large one: the manager is slow, finance releases it, and Max may not do both.")
    large = story.spend("rita", 24_000, "a van")
    story.wait(9)
    story.told("max")
    story.decide("max")
    story.refused("max", large)
    story.decide("fay")
    story.end(large)

    story.chapter("Max does not answer at all: a director is asked as well.")
    silent = story.spend("carl", 900, "a course")
    story.wait(25)
    story.told("max")
    story.told("dora")
    story.decide("dora", yes=False, comment="not this year")
    story.told("carl")
    story.end(silent)

    story.chapter("Max is on holiday, and Gus stands in.")
    ends = story.engine.clock.now() + timedelta(days=14)
    story.engine.acting("max").directory.delegate("max", "gus", ends_at=ends, reason="holidays")
    story.engine.acting("max").directory.absent("max", ends_at=ends)
    away = story.spend("rita", 300, "books")
    story.decide("gus")
    story.end(away)

    story.chapter("Dora has no manager: nobody can decide, so nothing is paid until somebody sees to it.")
    stuck = story.spend("dora", 50, "flowers")
    story.end(stuck)
    story.engine.tasks.reassign(stuck.tasks()[0], "fay", reason="no manager")
    story.decide("fay")
    story.end(stuck)

    sound = all(run.verify().is_sound for run in (small, large, silent, away, stuck))
    story.engine.stop()
    print(f"\n  Folded again from their events, all runs are the same: {sound}.")
    return sound


if __name__ == "__main__":
    sys.exit(0 if play() else 1)
