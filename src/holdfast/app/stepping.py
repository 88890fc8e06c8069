"""Handlers of steps: how a plain function becomes what a worker calls, and what it is given.

A handler may ask for the context, for the data as a whole, or for single values of it by name; its annotations say which types it wants. For
a compensation the data is what the step to undo had worked on, and over it what it had answered.
"""

from __future__ import annotations

import inspect
import logging
import typing
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, time, timedelta
from typing import cast

import msgspec

from holdfast.errors import ConfigurationError, PayloadError
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.wire import JsonCodec, convert, lowered
from holdfast.machine.commands import CompleteStep, RunStep
from holdfast.machine.evolving import merged
from holdfast.runtime.handlers import EffectContext, Fail, Function, Handlers

StepFunction = Callable[..., object]
Arguments = Callable[[EffectContext, RunStep], dict[str, object]]

_CONTEXT_NAMES = frozenset({"ctx", "context"})
_encode = JsonCodec().encode


class StepContext:
    """What a handler knows about its call."""

    __slots__ = ("_call", "_effect")

    def __init__(self, call: EffectContext, effect: RunStep) -> None:
        self._call = call
        self._effect = effect

    @property
    def instance(self) -> InstanceId:
        """The instance that the step belongs to."""
        return self._call.instance

    @property
    def tenant(self) -> str:
        """The tenant that the instance belongs to."""
        return self._call.tenant

    @property
    def workflow(self) -> str:
        """Name of the definition."""
        return self._call.decider

    @property
    def step(self) -> str:
        """Name of the step; of the step to undo, in a compensation."""
        return self._effect.node

    @property
    def step_number(self) -> int:
        """Number of the step within its instance."""
        return self._effect.step

    @property
    def attempt(self) -> int:
        """1 for the first call."""
        return self._effect.attempt

    @property
    def input(self) -> dict[str, object]:
        """The data that the step works on; in a compensation, what the step to undo had worked on."""
        return self._effect.input

    @property
    def previous(self) -> object:
        """What the step before had answered."""
        return self._effect.previous

    @property
    def is_compensation(self) -> bool:
        """Whether a step is being undone."""
        return self._effect.is_compensation

    @property
    def output(self) -> object:
        """What the step to undo had answered."""
        return self._effect.output

    @property
    def error(self) -> str:
        """Why the step is undone."""
        return self._effect.error

    @property
    def failed_step(self) -> str:
        """Name of the step whose failure led to the rollback; empty after a cancellation."""
        return self._effect.failed_step

    @property
    def metadata(self) -> Mapping[str, object]:
        """What the definition says about the step."""
        return self._effect.metadata

    @property
    def idempotency_key(self) -> str:
        """The same over all calls that do this work, and different from that of every other; give it to the outside world.

        A step that an operator lets be tried again keeps its key, unless it was given another input.
        """
        return f"{self._call.instance}:{self._effect.first}{'!' if self._effect.is_compensation else ''}"

    @property
    def deadline(self) -> datetime | None:
        """When the call counts as failed; None means never."""
        return self._call.deadline

    @property
    def connection(self) -> object:
        """The open transaction's connection, for transactional steps; None otherwise."""
        return self._call.connection

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer wanted. A plain function looks at it now and then; a coroutine is cancelled."""
        return self._call.cancelled

    def wait_cancelled(self, timeout: float) -> bool:
        """Sleep, but wake up when the result is no longer wanted; whether that is so."""
        return self._call.wait_cancelled(timeout)

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that names the instance and the attempt."""
        return self._call.logger


def step_handler(function: object, name: str) -> Function:
    """What a worker calls for the steps of a handler."""
    callee = cast("StepFunction", getattr(function, "execute", function))
    if not callable(callee):
        raise ConfigurationError(
            f"the handler {name!r} is a {type(function).__name__}: give a function, or an object with `execute`"
        )
    arguments = _arguments(callee, name)
    if Handlers.is_async(callee):

        async def call_async(context: EffectContext, effect: object) -> CompleteStep:
            assert isinstance(effect, RunStep)
            output = await cast("Awaitable[object]", callee(**arguments(context, effect)))
            return CompleteStep(step=effect.step, output=plain(output))

        return call_async

    def call(context: EffectContext, effect: object) -> CompleteStep:
        assert isinstance(effect, RunStep)
        output = callee(**arguments(context, effect))
        return CompleteStep(step=effect.step, output=plain(output))

    return call


def plain(value: object) -> object:
    """A value as it will come back from the database: JSON's own types; dates, decimals and the like as text."""
    if value is None:
        return None
    made = msgspec.json.decode(_encode(value))
    if not _is_equal(made, value):  # What is equal to JSON's own types holds no times.
        _refuse_odd_offsets(value)
    return made


def _is_equal(made: object, value: object) -> bool:
    try:
        return bool(made == value)
    except Exception:  # noqa: BLE001 - classes of the user's own compare as they like
        return False


def _refuse_odd_offsets(value: object) -> None:
    """As text a time keeps the hours and minutes of its offset; one with seconds in it would be another instant."""
    pending = [msgspec.to_builtins(value, builtin_types=(datetime, time), enc_hook=lowered, str_keys=True)]
    while pending:
        item = pending.pop()
        if isinstance(item, datetime | time):
            offset = item.utcoffset()
            if offset is not None and offset % timedelta(minutes=1):
                raise PayloadError(f"{item!r} has seconds in its offset, which cannot be stored; convert it to UTC")
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            pending.extend(item)


def plain_data(value: object, what: str) -> dict[str, object]:
    """Data for a token: an object with names."""
    made = plain(value)
    if made is None:
        return {}
    if not isinstance(made, dict):
        raise PayloadError(f"the {what} must be an object with names, such as a dict or a dataclass, not {value!r}")
    return made


def _arguments(callee: StepFunction, name: str) -> Arguments:
    """How to find the arguments of a call in its circumstances."""
    try:
        parameters = list(inspect.signature(callee).parameters.values())
    except (TypeError, ValueError):
        raise ConfigurationError(f"the handler {name!r} does not say which parameters it has") from None
    hints = _hints(callee)
    context_names = [each.name for each in parameters if _is_context(each, hints)]
    wanted = [each for each in parameters if each.name not in context_names and each.kind not in _VARIABLE]
    if any(each.kind is inspect.Parameter.POSITIONAL_ONLY for each in parameters):
        raise ConfigurationError(f"the handler {name!r} has positional-only parameters; let them be given by name")
    takes_whole = len(wanted) == 1 and _is_whole(hints.get(wanted[0].name))

    def arguments(context: EffectContext, effect: RunStep) -> dict[str, object]:
        given: dict[str, object] = {each: StepContext(context, effect) for each in context_names}
        data = effect.input
        if effect.is_compensation:  # What the step answered is what its undoing needs most.
            data = merged(data, effect.node, effect.output)
        if takes_whole and wanted[0].name not in data:
            given[wanted[0].name] = _converted(data, hints.get(wanted[0].name), name, "its data")
            return given
        for each in wanted:
            if each.name in data:
                given[each.name] = _converted(data[each.name], hints.get(each.name), name, repr(each.name))
            elif each.default is inspect.Parameter.empty:
                raise Fail(f"the handler {name!r} needs {each.name!r}, which is not in the data of {effect.node!r}")
        return given

    return arguments


_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _hints(callee: StepFunction) -> dict[str, object]:
    target = callee if inspect.isroutine(callee) or inspect.isclass(callee) else type(callee).__call__
    try:
        return typing.get_type_hints(target)
    except Exception:  # noqa: BLE001 - an annotation that cannot be resolved is no annotation
        return {}


def _is_context(parameter: inspect.Parameter, hints: dict[str, object]) -> bool:
    return hints.get(parameter.name) is StepContext or (
        parameter.name in _CONTEXT_NAMES and parameter.name not in hints
    )


def _is_whole(hint: object) -> bool:
    """Whether a single parameter of this type stands for the data as a whole: it has names itself."""
    if hint is None or hint in {dict, object}:
        return True
    origin = typing.get_origin(hint)
    if origin is not None:
        return isinstance(origin, type) and issubclass(origin, Mapping)
    has_fields = any(hasattr(hint, each) for each in ("__struct_fields__", "__dataclass_fields__", "model_fields"))
    return has_fields or typing.is_typeddict(hint) or hint is Mapping


def _converted(value: object, hint: object, handler: str, what: str) -> object:
    if hint is None or hint in {object, dict}:
        return value
    try:
        return convert(cast("Mapping[str, object]", value), cast("type[object]", hint))
    except PayloadError as error:
        raise Fail(f"the handler {handler!r} cannot take {what}: {error}") from error
