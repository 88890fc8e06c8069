"""The steps of a rules file as its author meant them: read from plain data, with every mistake found in one go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final, TypeAlias

import msgspec

from standfast.errors import Diagnostic
from standfast.expressions.model.suggestions import suggestion
from standfast.graph.values.approver_rules import PICKS, Agree, Pick
from standfast.kernel.durations import HOW_TO_WRITE, duration_of

Fields: TypeAlias = Mapping[str, object]


class RuleNotification(msgspec.Struct, frozen=True, kw_only=True):
    """Tells people something."""

    recipients: tuple[str, ...]
    message: str
    subject: str = ""
    channel: str = ""


class RuleCall(msgspec.Struct, frozen=True, kw_only=True):
    """Calls a handler."""

    handler: str
    attempts: int = 3
    timeout: timedelta | None = None
    capability: str = ""
    """What the starter of the run needs for the call; a handler may require it."""


Entry: TypeAlias = RuleNotification | RuleCall
"""What a step does when it is reached."""


class BlockApproval(msgspec.Struct, frozen=True, kw_only=True):
    """What lifts a block."""

    role: str = ""
    pick: Pick = "any"
    """Whether those with the role share one place, or each of them is asked, or one in turn."""
    users: tuple[str, ...] = ()
    """Those who are asked by their ids, besides whoever has the role."""
    agree: Agree | None = None
    """How many of them have to approve; None means all of a list, and any of one role."""
    least: int = 0
    timeout: timedelta | None = None
    """None means what the engine's settings say."""
    escalate_to: str = ""
    """The role that is asked when nobody has decided in time, if the engine's settings say so."""
    requires_reason: bool = False
    """Whether a rejection needs a comment."""
    self_approval: bool = True
    """Whether whoever started the run may lift the block too."""


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """What all steps have."""

    id: str
    execute: tuple[Entry, ...] = ()
    """Done, in this order, when the step is reached."""


class ConditionStep(_Step, frozen=True, kw_only=True):
    """Asks a question about the data."""

    condition: object
    on_true: str = ""
    on_false: str = ""


class AllowStep(_Step, frozen=True, kw_only=True):
    """Ends the run: allowed."""

    reason: str = ""


class BlockStep(_Step, frozen=True, kw_only=True):
    """Ends the run, blocked, unless an approval lifts the block."""

    reason: str = ""
    approval: BlockApproval | None = None
    on_true: str = ""
    """Where an approval leads; empty means the step that follows in the list."""
    on_false: str = ""
    """Where a rejection leads; empty means that the block stands."""
    on_timeout: str = ""


class RuleWaitStep(_Step, frozen=True, kw_only=True):
    """Waits for an event, or for time to go by."""

    event: str = ""
    key: str = ""
    """Path into the data, to the value that the event must name."""
    match: object = None
    """A condition on what the event brings."""
    duration: timedelta | None = None
    timeout: timedelta | None = None
    next: str = ""
    on_timeout: str = ""


class ExecuteStep(_Step, frozen=True, kw_only=True):
    """Does what `execute` says, and goes on."""

    next: str = ""


Step: TypeAlias = ConditionStep | AllowStep | BlockStep | RuleWaitStep | ExecuteStep


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """A whole file."""

    workflow_id: str
    version: str
    name: str
    trigger: str
    """The event that starts it; empty if none does."""
    steps: tuple[Step, ...]


_FIELDS: Final[dict[str, frozenset[str]]] = {
    "condition": frozenset({"condition", "on_true", "on_false"}),
    "allow": frozenset({"action", "reason"}),
    "block": frozenset({"action", "reason", "requires", "on_true", "on_false", "on_timeout"}),
    "wait": frozenset({"event", "key", "match", "duration", "timeout", "next", "on_timeout"}),
    "run": frozenset({"next", "action"}),
}
_COMMON: Final = frozenset({"id", "type", "name", "description", "execute"})
_TYPES: Final = ("condition", "action", "wait")
_ROLE, _USER = "role:", "user:"
_ACTIONS: Final = ("allow", "block", "execute")


class RuleReader:
    """Reads plain data and gathers what is wrong with it."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def rules(self, data: Fields) -> Rules:
        """The file; what is wrong with it is in `found` afterwards."""
        known = ("workflow_id", "version", "name", "description", "trigger", "steps")
        self._check_names(data, known, "the workflow", "")
        steps = data.get("steps")
        if not isinstance(steps, list) or not steps:
            self._find("steps", "`steps` is a list of at least one step", "steps")
            steps = []
        given = [self._step(each, f"steps[{place}]") for place, each in enumerate(steps)]
        version = data.get("version", "1")
        return Rules(
            workflow_id=self._text(data, "workflow_id", "", required=True),
            version=str(version) if isinstance(version, int) else self._text({"version": version}, "version", ""),
            name=self._text(data, "name", ""),
            trigger=self._trigger(data.get("trigger")),
            steps=tuple(each for each in given if each is not None),
        )

    def _trigger(self, given: object) -> str:
        if given is None or isinstance(given, str):
            return given or ""
        fields = self._object(given, "trigger", "a trigger is the name of an event, or an object with `event`")
        self._check_names(fields, ("event",), "the trigger", "trigger")
        return self._text(fields, "event", "trigger", required=True)

    # -- steps

    def _step(self, given: object, place: str) -> Step | None:
        fields = self._object(given, place, "a step is an object with `id` and `type`")
        if not fields:
            return None
        kind, fields = self._kind(fields, place)
        if not kind:
            self._check_names(fields, frozenset().union(_COMMON, *_FIELDS.values()), "a step of any type", place)
            self._text(fields, "id", place, required=True)
            self._execute(fields, place)
            return None
        self._check_names(fields, _FIELDS[kind] | _COMMON, f"a step of the type {kind!r}", place)
        name = self._text(fields, "id", place, required=True)
        read: dict[str, Callable[[Fields, str, str], Step]] = {
            "condition": self._condition,
            "allow": self._allow,
            "block": self._block,
            "wait": self._wait,
            "run": self._run,
        }
        return read[kind](fields, place, name)

    def _kind(self, fields: Fields, place: str) -> tuple[str, Fields]:
        """What a step is, and its fields with those that stand inside of `action` at the top."""
        kind = fields.get("type")
        if kind not in _TYPES:
            near = suggestion(str(kind), _TYPES)
            self._find("step_type", f"the type of a step is one of {', '.join(_TYPES)}, not {kind!r}{near}", place)
            return "", fields
        if kind != "action":
            return str(kind), fields
        action = fields.get("action")
        if isinstance(action, Mapping):
            inner = dict(action)
            action = inner.pop("type", None)
            for name in inner.keys() & fields.keys():
                if inner[name] != fields[name]:
                    told = f"`{name}` stands beside `action` and inside of it, and says two things; keep one of them"
                    self._find("two_meanings", told, f"{place}.{name}")
            fields = {**{key: value for key, value in fields.items() if key != "action"}, **inner, "action": action}
        if action not in _ACTIONS:
            near = suggestion(str(action), _ACTIONS)
            self._find("action", f"the action of a step is one of {', '.join(_ACTIONS)}, not {action!r}{near}", place)
            return "", fields
        return ("run" if action == "execute" else str(action)), fields

    def _condition(self, fields: Fields, place: str, name: str) -> ConditionStep:
        if "condition" not in fields:
            self._find("condition", f"{name!r} has no `condition`; give field, operator and value", place)
        return ConditionStep(
            id=name,
            execute=self._execute(fields, place),
            condition=fields.get("condition"),
            on_true=self._text(fields, "on_true", place),
            on_false=self._text(fields, "on_false", place),
        )

    def _allow(self, fields: Fields, place: str, name: str) -> AllowStep:
        return AllowStep(id=name, execute=self._execute(fields, place), reason=self._text(fields, "reason", place))

    def _block(self, fields: Fields, place: str, name: str) -> BlockStep:
        approval = None
        if fields.get("requires") is not None:
            approval = self._approval(fields["requires"], f"{place}.requires")
        else:
            for key in ("on_true", "on_false", "on_timeout"):
                if key in fields:
                    told = f"{name!r} blocks for good, so {key!r} leads nowhere; give `requires`, or drop it"
                    self._find("requires", told, place)
        return BlockStep(
            id=name,
            execute=self._execute(fields, place),
            reason=self._text(fields, "reason", place),
            approval=approval,
            on_true=self._text(fields, "on_true", place),
            on_false=self._text(fields, "on_false", place),
            on_timeout=self._text(fields, "on_timeout", place),
        )

    def _approval(self, given: object, place: str) -> BlockApproval:
        fields = self._object(given, place, "`requires` is an object with `type`, and with `role` or `users`")
        known = ("type", "role", "pick", "users", "agree", "timeout", "escalate_to", "requires_reason", "self_approval")
        self._check_names(fields, known, "`requires`", place)
        if fields and fields.get("type") != "approval":
            told = f"`requires` is of the type {fields.get('type')!r}, and there is only 'approval'"
            self._find("requires_type", told, place)
        elif fields and fields.get("users") is None and not _named(fields.get("role")):
            told = "`requires` names nobody, so that anybody could lift the block; give `role` or `users`"
            self._find("role", told, place)
        agree, least = self._agreement(fields, place)
        return BlockApproval(
            role=self._role(fields, "role", place),
            pick=self._pick(fields, place),
            users=self._users(fields, place),
            agree=agree,
            least=least,
            timeout=self._duration(fields, "timeout", place),
            escalate_to=self._role(fields, "escalate_to", place),
            requires_reason=self._flag(fields, "requires_reason", place, default=False),
            self_approval=self._flag(fields, "self_approval", place, default=True),
        )

    def _role(self, fields: Fields, name: str, place: str) -> str:
        """The name of a role, which may be written as recipients are: `role:finance`."""
        given = self._text(fields, name, place).strip()
        if given.startswith(_USER):
            self._find("role", f"`{name}` is a role, not {given!r}; name users in `users`", f"{place}.{name}")
        return given.removeprefix(_ROLE).strip()

    def _pick(self, fields: Fields, place: str) -> Pick:
        given = fields.get("pick", "any")
        pick = next((each for each in PICKS if each == given), None)
        if pick is None:
            told = f"`pick` is one of {', '.join(map(repr, PICKS))}, not {given!r}"
            self._find("pick", told, f"{place}.pick")
        elif pick != "any" and not _named(fields.get("role")):
            self._find("pick", "`pick` says who of a role is asked, and no role is named; give `role`", f"{place}.pick")
        return pick or "any"

    def _users(self, fields: Fields, place: str) -> tuple[str, ...]:
        given = fields.get("users")
        if given is None:
            return ()
        if (
            not isinstance(given, list)
            or not given
            or not all(isinstance(each, str) and each.strip() for each in given)
        ):
            self._find("users", f"`users` is a list of at least one id of a user, not {given!r}", f"{place}.users")
            return ()
        return tuple(given)

    def _agreement(self, fields: Fields, place: str) -> tuple[Agree | None, int]:
        """How many of those who are asked have to approve; None if the file does not say it."""
        if "agree" not in fields:
            return None, 0
        match fields["agree"]:
            case "any":
                return "any", 0
            case "all":
                return "all", 0
            case int(least) if not isinstance(least, bool) and least > 0:
                return "n", least
            case other:
                told = f"`agree` is 'any', 'all' or a whole number from 1, not {other!r}"
                self._find("agree", told, f"{place}.agree")
                return "any", 0

    def _wait(self, fields: Fields, place: str, name: str) -> RuleWaitStep:
        if ("event" in fields) == ("duration" in fields):
            self._find("wait", f"{name!r} waits for nothing, or for two things; give `event` or `duration`", place)
        if "duration" in fields:
            for key in ("timeout", "on_timeout", "key", "match"):
                if key in fields:
                    told = f"{name!r} waits for time to go by, which {key!r} is no part of; drop it"
                    self._find("wait", told, place)
        return RuleWaitStep(
            id=name,
            execute=self._execute(fields, place),
            event=self._text(fields, "event", place),
            key=self._text(fields, "key", place),
            match=fields.get("match"),
            duration=self._duration(fields, "duration", place),
            timeout=self._duration(fields, "timeout", place),
            next=self._text(fields, "next", place),
            on_timeout=self._text(fields, "on_timeout", place),
        )

    def _run(self, fields: Fields, place: str, name: str) -> ExecuteStep:
        execute = self._execute(fields, place)
        if not execute and not self.found:
            self._find("execute", f"{name!r} has nothing to do; give `execute`, a list of actions", place)
        return ExecuteStep(id=name, execute=execute, next=self._text(fields, "next", place))

    # -- what steps do

    def _execute(self, fields: Fields, place: str) -> tuple[Entry, ...]:
        given = fields.get("execute", [])
        if not isinstance(given, list):
            self._find("execute", "`execute` is a list of actions, such as {'type': 'notify', …}", place)
            return ()
        return tuple(self._entry(each, f"{place}.execute[{number}]") for number, each in enumerate(given))

    def _entry(self, given: object, place: str) -> Entry:
        fields = self._object(given, place, "an action is an object with `type`")
        match fields.get("type"):
            case "notify":
                return self._notify(fields, place)
            case "call":
                return self._call(fields, place)
            case other:
                if isinstance(given, Mapping):  # What is no object was told already.
                    near = suggestion(str(other), ("notify", "call"))
                    self._find("execute_type", f"an action is 'notify' or 'call', not {other!r}{near}", place)
                return RuleNotification(
                    recipients=(), message=""
                )  # It stands for an action of rules that are refused because of it.

    def _notify(self, fields: Fields, place: str) -> RuleNotification:
        self._check_names(fields, ("type", "recipients", "message", "subject", "channel"), "'notify'", place)
        recipients = fields.get("recipients")
        if not isinstance(recipients, list) or not recipients or not all(isinstance(each, str) for each in recipients):
            self._find("recipients", "`recipients` is a list of at least one role, user or address", place)
            recipients = []
        return RuleNotification(
            recipients=tuple(recipients),
            message=self._text(fields, "message", place, required=True),
            subject=self._text(fields, "subject", place),
            channel=self._text(fields, "channel", place),
        )

    def _call(self, fields: Fields, place: str) -> RuleCall:
        self._check_names(fields, ("type", "handler", "attempts", "timeout", "capability"), "'call'", place)
        attempts = fields.get("attempts", 3)
        if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:
            self._find("attempts", f"`attempts` is a whole number from 1, not {attempts!r}", place)
            attempts = 1
        return RuleCall(
            handler=self._text(fields, "handler", place, required=True),
            attempts=attempts,
            timeout=self._duration(fields, "timeout", place),
            capability=self._text(fields, "capability", place),
        )

    # -- values

    def _object(self, given: object, place: str, what: str) -> Fields:
        if isinstance(given, Mapping):
            return given
        self._find("not_an_object", f"{what}, not {given!r}", place)
        return {}

    def _text(self, fields: Fields, name: str, place: str, *, required: bool = False) -> str:
        value = fields.get(name)
        where = f"{place}.{name}" if place else name
        if value is None and not required:
            return ""
        if not isinstance(value, str) or (required and not value.strip()):
            self._find("not_a_text", f"`{name}` is a text, not {value!r}", where)
            return ""
        return value

    def _flag(self, fields: Fields, name: str, place: str, *, default: bool) -> bool:
        value = fields.get(name, default)
        if not isinstance(value, bool):
            self._find("not_a_flag", f"`{name}` is true or false, not {value!r}", f"{place}.{name}")
            return default
        return value

    def _duration(self, fields: Fields, name: str, place: str) -> timedelta | None:
        value = fields.get(name)
        if value is None:
            return None
        found = duration_of(value)
        if found is None or found <= timedelta(0):
            self._find(
                "duration", f"`{name}` is {value!r}, which is no time to wait; {HOW_TO_WRITE}", f"{place}.{name}"
            )
        return found

    def _check_names(self, fields: Fields, known: Iterable[str], what: str, place: str) -> None:
        for name in fields:
            if name not in known:
                near = suggestion(str(name), known)
                told = near or f"; there are {', '.join(sorted(known))}"
                self._find("unknown_field", f"{what} has no {name!r}{told}", place or str(name))

    def _find(self, code: str, message: str, place: str) -> None:
        self.found.append(Diagnostic(code, message, place))


def _named(role: object) -> bool:
    """Whether a role is named; what is no text is another finding."""
    return role is not None and (not isinstance(role, str) or bool(role.removeprefix(_ROLE).strip()))
