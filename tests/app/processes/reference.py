"""What the format of processes means, in a few lines: random processes that are sound, and an interpreter of them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

EVENTS = ("approved", "rejected", "returned")
CAPABILITIES = ("work", "large")
Way = dict[str, Any]
CONDITIONS: dict[str, Callable[[int, int | None], bool]] = {
    "workflow.n > 2": lambda data, _given: data > 2,
    "input.n > 2": lambda _data, given: given is not None and given > 2,
    "workflow.gone == 1": lambda _data, _given: False,
}
FORM = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 4}}}
LIMIT = 3
MINUTE = 1 / 60


def random_process(rng: Random) -> dict[str, Any]:  # noqa: C901 - a case for each kind of step
    """Steps of every kind, with ways between them that may be missing, closed or in circles, and times that may be over."""
    names = [f"s{number}" for number in range(rng.randint(2, 6))]
    targets = [*names, "end", "over"]
    steps: list[dict[str, Any]] = []
    ways: list[dict[str, Any]] = []

    def way(name: str, event: str, *, guard: bool = False) -> None:
        found: dict[str, Any] = {"from": name, "event": event, "to": rng.choice(targets)}
        if rng.random() < 0.35:
            found["condition"] = rng.choice([each for each in CONDITIONS if guard or not each.startswith("input")])
        if guard and rng.random() < 0.3:
            found["guard"] = "large"
        ways.append(found)

    for name in names:
        kind = (
            "action" if name == "s0" else rng.choice(("action", "approval", "system", "system", "notification", "wait"))
        )
        step: dict[str, Any] = {"id": name, "type": kind}
        match kind:
            case "action" | "approval":
                step |= rng.choice(({}, {}, {"capability": "work"}, {"assignee": {"role": "clerk"}}))
                step |= rng.choice(({}, {}, {"form": FORM, "form_for": ["approved"]}))
                step |= rng.choice(({}, {}, {"operation": rng.choice(("good", "bad")), "retry": {"attempts": 1}}))
                step |= rng.choice(({}, {"timeout": "2h"}, {"timeout": "1h", "on_timeout": rng.choice(targets)}))
                for event in ["approved"] * ("form" in step) + rng.choices(EVENTS, k=rng.randint(1, 3)):
                    way(name, event, guard=True)
                if "operation" in step and rng.random() < 0.5:
                    ways.append({"from": name, "event": "error", "to": rng.choice(targets)})
            case "wait":
                timeout = rng.choice(({}, {"timeout": "2h"}, {"timeout": "3h", "on_timeout": rng.choice(targets)}))
                step |= rng.choice(({"duration": "1h"}, {"event": "paid", **timeout}))
                way(name, rng.choice(("completed", "paid")) if "event" in step else "completed")
            case _:
                step |= {"operation": rng.choice(("good", "bad")), "retry": {"attempts": 1}}
                for event in ("completed", "completed", "error")[: 3 if kind == "system" else 2]:
                    if rng.random() < 0.7:
                        way(name, event)
        steps.append(step)
    ways.append({"from": "s0", "event": "closed", "to": "end"})
    whole = rng.choice(({}, {"timeout": "5h30m"}, {"timeout": "5h30m", "on_timeout": rng.choice(targets)}))
    workflow = {"id": "w", "chain_limit": LIMIT, **whole, "steps": [*steps, *_ends("end", "over")], "transitions": ways}
    return {"domain": "d", "workflows": [workflow]}


def _ends(*names: str) -> list[dict[str, Any]]:
    return [{"id": name, "type": "terminal"} for name in names]


class Interpreter:
    """One instance of a random process. Times are hours."""

    def __init__(self, file: dict[str, Any], n: int) -> None:
        (self.workflow,) = file["workflows"]
        self.steps = {step["id"]: step for step in self.workflow["steps"]}
        self.ways: list[Way] = self.workflow["transitions"]
        self.n, self.status, self.chain, self.now = n, "active", 0, 0.0
        self.deadline = 5.5 if "timeout" in self.workflow else None
        self.is_overdue = False
        self.held = ""
        """What a suspended instance goes on with: `call`, `enter` or `wait`."""
        self._enter("s0")

    def advance(self, event: str, n: int, capabilities: frozenset[str], roles: frozenset[str]) -> str:
        """The code of the refusal; empty if there is none."""
        step = self.steps[self.at]
        if self.status != "active":
            return "WORKFLOW_NOT_ACTIVE"
        if step.get("assignee", {"role": ""})["role"] not in {"", *roles} or step.get("capability", "") not in {
            "",
            *capabilities,
        }:
            return "FORBIDDEN"
        way = self._way(event, n, capabilities) if event not in {"error", "timeout"} else None
        if way is None:
            return "INVALID_TRANSITION"
        if n > 4 and event in step.get("form_for", ()):
            return "VALIDATION_ERROR"
        self.n, self.chain, self.way = n, 0, way
        self._call() if "operation" in step else self._enter(way["to"])
        return ""

    def signal(self) -> str:
        """What it waits for has happened; what leads nowhere is refused, like an answer."""
        if self._way("paid", None) is None and self._way("completed", None) is None:
            return "INVALID_TRANSITION"
        self.chain = 0
        self._leave("paid", "completed")
        return ""

    @property
    def awaits_signal(self) -> bool:
        """Whether it waits for the signal."""
        is_over = self.status not in {"active", "suspended"}
        return not is_over and self.held == "wait" and "event" in self.steps[self.at]

    def resume(self) -> str:
        """The code of the refusal; empty if there is none."""
        if self.status != "suspended":
            return "INVALID_TRANSITION" if self.status == "active" else "WORKFLOW_NOT_ACTIVE"
        if self.held == "wait" and self._way("paid", None) is None and self._way("completed", None) is None:
            return "INVALID_TRANSITION"
        held, self.status, self.chain = self.held, "active", 0
        if self.is_overdue:
            self.deadline, self.is_overdue = self.now + MINUTE, False
        match held:
            case "wait":
                self._leave("paid", "completed")
            case "call":
                self._call()
            case _:
                self._enter(self.at, is_asked=True)
        return ""

    def cancel(self) -> str:
        """The code of the refusal; empty if there is none."""
        if self.status not in {"active", "suspended"}:
            return "WORKFLOW_NOT_ACTIVE"
        self.status = "cancelled"
        return ""

    def wait(self, hours: int) -> None:
        """Time goes by; what is due on the way happens at its time."""
        end = self.now + hours
        while self.status in {"active", "suspended"}:
            step = self.steps[self.at]
            is_waiting = self.held in {"", "wait"}
            own = {"1h": 1, "2h": 2, "3h": 3}.get(step.get("timeout", step.get("duration", "")))
            due = (
                [self.entered + own]
                if own is not None and is_waiting and step["type"] in {"action", "approval", "wait"}
                else []
            )
            first = min([*due, *([] if self.deadline is None else [self.deadline])], default=end + 1)
            if first > end:
                break
            self.now = max(first, self.now)
            if first == self.deadline:
                self.deadline = None
                if not is_waiting:
                    self.is_overdue = True
                    continue
            elif "duration" in step:
                self.chain = 0
                self._leave("completed")
                continue
            self.status, self.chain = "active", 0
            to = step.get("on_timeout") or self.workflow.get("on_timeout")
            if to is None:
                self.status, self.held = "failed", ""
            else:
                self._enter(to)
        self.now = end

    def _enter(self, name: str, *, is_asked: bool = False) -> None:
        self.at, step, self.held, self.entered = name, self.steps[name], "", self.now
        self.status = {"terminal": "completed", "wait": "suspended"}.get(step["type"], "active")
        match step["type"]:
            case "wait":
                self.held = "wait"
            case "system" | "notification":
                if self.chain == LIMIT and not is_asked:
                    self.status, self.held = "suspended", "enter"
                else:
                    self._call()
            case _:
                pass

    def _call(self) -> None:
        step = self.steps[self.at]
        self.chain, self.held = self.chain + 1, ""
        is_good = step["operation"] == "good"
        if step["type"] in {"action", "approval"} and is_good:
            self._enter(self.way["to"])
        elif is_good or (step["type"] == "notification"):
            self._leave("completed")
        else:
            way = self._way("error", None)
            if way is None:
                self.status, self.held = "suspended", "call"
            else:
                self._enter(way["to"])

    def _leave(self, *events: str) -> None:
        """By the first of these events that a way is open for; it has failed if there is none."""
        way = next((way for way in (self._way(event, None) for event in events) if way is not None), None)
        self.held = ""
        if way is None:
            self.status = "failed"
        else:
            self._enter(way["to"])

    def _way(self, event: str, given: int | None, capabilities: frozenset[str] = frozenset()) -> Way | None:
        for way in self.ways:
            holds = "condition" not in way or CONDITIONS[way["condition"]](self.n, given)
            is_meant = (way["from"], way["event"]) == (self.at, event)
            if is_meant and holds and way.get("guard", "") in {"", *capabilities}:
                return way
        return None
