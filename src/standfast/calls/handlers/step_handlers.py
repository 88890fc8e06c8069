"""Handlers of steps: how a plain function becomes what a worker calls, and what it is given.

A handler may ask for the context, for the data as a whole, or for single values of it by name; its annotations say which types it wants. The
signature alone says what a parameter means, never the data. For a compensation the data is what the step to undo had worked on, and over it
what it had answered.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import types
import typing
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, cast

import msgspec

from standfast.engine.common.handlers import EffectContext, Fail, Function, Handlers, UncalledError
from standfast.errors import ConfigurationError, PayloadError, brief, indefinite
from standfast.kernel.actor import Actor
from standfast.kernel.codec.codecs import Codec, JsonCodec, convert
from standfast.kernel.codec.defaults import complete
from standfast.kernel.codec.depth import TOO_DEEP, is_deep, is_flat_json
from standfast.kernel.codec.message_types import stored_name
from standfast.kernel.codec.plain_data import refuse_equal_keys, review, told_whole
from standfast.kernel.ids import InstanceId
from standfast.machine.model.commands.run_commands import CompleteStep, RunStep

StepFunction = Callable[..., object]
Arguments = Callable[[EffectContext, RunStep], dict[str, object]]

_CONTEXT_NAMES = frozenset({"ctx", "context"})
_WHOLE_NAMES = frozenset({"data", "input"})
_codec = JsonCodec()
_encode = _codec.encode


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
    def key(self) -> str:
        """The business key that the instance was started with; empty if it has none."""
        return self._call.key

    @property
    def actor(self) -> Actor:
        """Whose command asked for this call; `system` if it follows from another step, or from a call that failed."""
        return self._call.actor

    @property
    def trace(self) -> str:
        """Names the request that it follows from; empty if none was named."""
        return self._call.trace

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
        return self._call.attempt if self._effect.is_detached else self._effect.attempt

    @property
    def input(self) -> dict[str, object]:
        """The data that the step works on; in a compensation, what the step to undo had worked on."""
        return self._effect.input

    @property
    def previous(self) -> object:
        """What the step before had answered."""
        return self._effect.last_answer

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
    def connection(self) -> Any:
        """The open transaction's connection, of psycopg or sqlite3, for transactional steps; others fail at once by asking for it."""
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


def named_handler(function: object, name: str, codec: Codec, capability: str = "") -> Function:
    """What a worker calls for a handler that was registered by name. What arrives says how: steps by names, effects of deciders by place.

    With a capability it is called only for steps whose starter was asked for that very one.
    """
    prove = None if isinstance(codec, JsonCodec) else codec.encode  # What is plain data is JSON already.
    for_effects = _for_effects(function, name)
    try:
        step, arguments = _for_steps(function, name)
    except ConfigurationError as error:
        if for_effects is None:
            raise
        step, arguments = for_effects, _refusing(str(error))

    def effect_handler(effect: object) -> StepFunction:
        if for_effects is not None:
            return for_effects
        kind = stored_name(effect)
        raise UncalledError(
            f"the handler {name!r} cannot take {kind}: effects of deciders are given as (context, effect)"
        )

    if Handlers.is_async(step):

        async def call_async(context: EffectContext, effect: object) -> object:
            if not isinstance(effect, RunStep):
                return await cast("Awaitable[object]", effect_handler(effect)(context, effect))
            _check_asked(effect, name, capability)
            output = await cast("Awaitable[object]", step(**arguments(context, effect)))
            return _answered(effect, output, name, prove)

        return call_async

    def call(context: EffectContext, effect: object) -> object:
        if not isinstance(effect, RunStep):
            return effect_handler(effect)(context, effect)
        _check_asked(effect, name, capability)
        output = step(**arguments(context, effect))
        return _answered(effect, output, name, prove)

    return call


def _check_asked(effect: RunStep, handler: str, capability: str) -> None:
    """Refuse a step that names a handler without asking the starter of the run for what the handler requires."""
    if capability and effect.capability != capability:
        told = f"the handler {handler!r} requires the capability {capability!r}, which {effect.node!r} does not ask the starter of the run for"
        raise UncalledError(f"{told}; publish another version whose step names that capability")


def _answered(effect: RunStep, output: object, handler: str, prove: Callable[[object], bytes] | None) -> CompleteStep:
    """What a handler's answer tells the machine. Of a compensation only one that changes a document counts; another call of others would give no better one."""
    if effect.is_compensation and not effect.writes:
        return CompleteStep(step=effect.step)
    try:
        made = plain(output)
        if prove is not None:
            prove(made)
    except PayloadError as error:
        raise Fail(
            f"what the handler {handler!r} answered in {effect.node!r} cannot be kept: {error}; the answer was {brief(output)}"
        ) from error
    return CompleteStep(step=effect.step, output=made)


def takes_effects(function: object) -> bool:
    """Whether something can be called with a context and an effect."""
    try:
        inspect.signature(cast("StepFunction", function)).bind(None, None)
    except TypeError:  # It cannot be called, or not with two arguments.
        return False
    except ValueError:  # It does not tell its parameters.
        return True
    return True


def _for_effects(function: object, name: str) -> StepFunction | None:
    """What is called for effects of deciders; None if nothing can be."""
    callee = getattr(function, "handle", function)
    if not takes_effects(callee):
        return None
    if Handlers.is_async(callee) != Handlers.is_async(getattr(function, "execute", callee)):
        raise ConfigurationError(
            f"`execute` and `handle` of the handler {name!r} must both be coroutines, or none of them"
        )
    return cast("StepFunction", callee)


def check_step_handler(function: object, name: str) -> None:
    """Refuse what steps cannot call."""
    _for_steps(function, name)


def _for_steps(function: object, name: str) -> tuple[StepFunction, Arguments]:
    """What is called for steps, and how its arguments are found."""
    callee: object = getattr(function, "execute", function)
    if not callable(callee):
        raise ConfigurationError(
            f"the handler {name!r} is {indefinite(type(function))}: give a function, or an object with `execute`"
        )
    try:
        parameters = list(inspect.signature(callee).parameters.values())
    except (TypeError, ValueError):
        raise ConfigurationError(f"the handler {name!r} does not say which parameters it has") from None
    kinds = {each.kind for each in parameters}
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        raise ConfigurationError(f"the handler {name!r} has positional-only parameters; let them be given by name")
    if inspect.Parameter.VAR_POSITIONAL in kinds and kinds <= {*_VARIABLE}:
        raise ConfigurationError(
            f"the handler {name!r} takes anything and says nothing; if it is decorated, use functools.wraps in the decorator"
        )
    return callee, _arguments(callee, parameters, name)


def _refusing(reason: str) -> Arguments:
    def arguments(_context: EffectContext, _effect: RunStep) -> dict[str, object]:
        raise UncalledError(reason)

    return arguments


def plain(value: object, *, what: str = "", limit: int | None = None) -> object:
    """A value as it will come back from the database: JSON's own types; dates, decimals and the like as text."""
    if value is None:
        return None
    data = _encode(complete(value))
    made = _read(data, value)
    if not _is_equal(made, value):  # What is equal to JSON's own types holds no classes, no times and no odd keys.
        leaves_out, has_odd_keys = review(value)
        if leaves_out:
            data = _encode(told_whole(value))
            made = _read(data, value)
        if has_odd_keys:
            refuse_equal_keys(data)
    if limit is not None and len(data) > limit:
        raise PayloadError(
            f"the {what} takes {len(data)} bytes and the limit is {limit}: "
            "keep large data elsewhere and pass a reference, or raise max_payload_bytes"
        )
    return made


def _read(data: bytes, value: object) -> object:
    """What JSON says, if it is no deeper than it may be."""
    try:
        made: object = msgspec.json.decode(data)
    except msgspec.DecodeError as error:  # A piece of JSON that the caller wrote is taken as it is.
        raise PayloadError(f"{type(value).__name__} cannot be stored: {error}") from error
    except RecursionError:
        raise PayloadError(f"{type(value).__name__} cannot be stored: {TOO_DEEP}") from None
    if not is_flat_json(data) and is_deep(made):
        raise PayloadError(f"{type(value).__name__} cannot be stored: {TOO_DEEP}")
    return made


def _is_equal(made: object, value: object) -> bool:
    try:
        return bool(made == value)
    except Exception:  # noqa: BLE001 - classes of the user's own compare as they like
        return False


def plain_data(value: object, what: str, *, limit: int) -> dict[str, object]:
    """Data for a token: an object with names."""
    made = plain(value, what=what, limit=limit)
    if made is None:
        return {}
    if not isinstance(made, dict):
        raise PayloadError(f"the {what} must be an object with names, such as a dict or a dataclass, not {value!r}")
    return made


def _arguments(callee: StepFunction, parameters: list[inspect.Parameter], name: str) -> Arguments:
    """How to find the arguments of a call in its circumstances."""
    hints = _hints(callee, parameters, name)
    context_names = [each.name for each in parameters if _is_context(each, hints)]
    others = [each for each in parameters if each.name not in context_names and each.kind not in _VARIABLE]
    whole_names = [each.name for each in others if each.name in _WHOLE_NAMES and _has_names(hints.get(each.name))]
    wanted = [each for each in others if each.name not in whole_names]
    rest = next((each.name for each in parameters if each.kind is inspect.Parameter.VAR_KEYWORD), "")
    named = frozenset(each.name for each in parameters)
    _refuse_flaws({each: hint for each, hint in hints.items() if each not in context_names}, name)

    def arguments(context: EffectContext, effect: RunStep) -> dict[str, object]:
        given: dict[str, object] = {each: StepContext(context, effect) for each in context_names}
        data = effect.data
        for each in whole_names:
            given[each] = _converted(data, hints.get(each), name, "its data")
        for parameter in wanted:
            key = parameter.name
            if key in data:
                given[key] = _converted(data[key], hints.get(key), name, repr(key))
            elif parameter.default is inspect.Parameter.empty:
                missing = f"the handler {name!r} needs {key!r}, which is not in the data of {effect.node!r}"
                raise UncalledError(missing + _hint(effect, hints.get(key)))
        if rest:
            for key in data.keys() - named:
                given[key] = _converted(data[key], hints.get(rest), name, repr(key))
        return given

    return arguments


def _refuse_flaws(hints: dict[str, object], name: str) -> None:
    """A type that nothing can be read into is told of now, not when the step is called."""
    for parameter, hint in hints.items():
        for flaw in () if _is_anything(hint) else _codec.flaws(hint):
            raise ConfigurationError(
                f"the parameter {parameter!r} of the handler {name!r} can never be given: {flaw.place}: {flaw.reason}"
            )


def _hint(effect: RunStep, wanted: object) -> str:
    """What may be meant by a parameter that is not in the data."""
    if effect.is_compensation and effect.output is None:
        return "; the step gave no answer, because it failed or had none: give the parameter a default"
    return "; a parameter named `data` is given the data as a whole" if _has_names(wanted) else ""


_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _hints(callee: StepFunction, parameters: list[inspect.Parameter], name: str) -> dict[str, object]:
    """The types of the parameters. Each is found alone, because what another one says, or the return type, is no concern of it."""
    target = _function_of(callee)
    names = {**getattr(target, "__globals__", {}), **_enclosed(target)}
    hints: dict[str, object] = {}
    for each in parameters:
        if each.annotation is inspect.Parameter.empty or each.kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        declared = types.SimpleNamespace(__annotations__={each.name: each.annotation})
        try:
            hints.update(typing.get_type_hints(declared, globalns=names))
        except Exception as error:
            raise ConfigurationError(
                f"the type of the parameter {each.name!r} of the handler {name!r} cannot be found: {error}; "
                "import it where the module is loaded, not only for type checkers, or leave the annotation away"
            ) from error
    return hints


def _function_of(callee: object) -> object:
    """The function that tells the parameters: under partial ones and decorators, of a class or of an object that can be called."""
    while isinstance(callee, functools.partial | functools.partialmethod):
        callee = callee.func
    if inspect.isclass(callee):
        callee = callee.__init__ if "__init__" in vars(callee) else callee.__new__
    elif not inspect.isroutine(callee):
        callee = type(callee).__call__
    return inspect.unwrap(getattr(callee, "__func__", callee))


def _enclosed(function: object) -> dict[str, object]:
    """What a function inside of another one sees of it, as far as it is there already."""
    cells = getattr(function, "__closure__", None) or ()
    names = function.__code__.co_freevars if cells else ()  # type: ignore[attr-defined]
    found: dict[str, object] = {}
    for name, cell in zip(names, cells, strict=True):
        with contextlib.suppress(ValueError):  # It is not there yet.
            found[name] = cell.cell_contents
    return found


def _is_context(parameter: inspect.Parameter, hints: dict[str, object]) -> bool:
    hint = hints.get(parameter.name)
    if parameter.kind in _VARIABLE:
        return False
    return StepContext in _members(hint) or (parameter.name in _CONTEXT_NAMES and _is_anything(hint))


def _has_names(hint: object) -> bool:
    """Whether the data as a whole can be read into this type, or into a part of a union: it has names itself, or it is none at all."""
    return _is_anything(hint) or any(map(_is_named, _members(hint)))


def _is_named(hint: object) -> bool:
    cls = typing.get_origin(hint) or hint
    if isinstance(cls, type) and issubclass(cls, Mapping):
        return True
    has_fields = any(hasattr(cls, each) for each in ("__struct_fields__", "__dataclass_fields__", "model_fields"))
    return has_fields or typing.is_typeddict(cls)


def _is_anything(hint: object) -> bool:
    """Whether an annotation asks for nothing in particular."""
    return hint is None or hint is typing.Any or hint is object


def _members(hint: object) -> Iterator[object]:
    """The types of a union, or the one type; under the names that were given to them."""
    alias = getattr(hint, "__value__", None) or getattr(hint, "__supertype__", None)
    if alias is not None:
        yield from _members(alias)
    elif typing.get_origin(hint) in {typing.Union, types.UnionType}:
        for each in typing.get_args(hint):
            yield from _members(each)
    else:
        yield hint


def _converted(value: object, hint: object, handler: str, what: str) -> object:
    if _is_anything(hint):
        return value
    try:
        return convert(cast("Mapping[str, object]", value), cast("type[object]", hint))
    except PayloadError as error:
        raise UncalledError(f"the handler {handler!r} cannot take {what}: {error}") from error
