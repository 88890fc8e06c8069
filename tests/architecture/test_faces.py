"""The faces of the engine: made from one source, current, equal in what they offer, and free of the store's records."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import msgspec
import pytest

import standfast
from standfast.app.api import aio as awaitable
from standfast.app.api import sync as blocking
from standfast.app.api.namespaces import FutureEngineCalls
from standfast.calls.references import Handle
from standfast.engine.concurrency.replies import Reply
from standfast.features.runs.run_calls import FutureRun
from support.recording import hints_of
from support.repository import ROOT

FACES = {"sync": (blocking, ""), "aio": (awaitable, "Async")}


def generator() -> ModuleType:
    """The script devtools/faces.py as a module."""
    spec = importlib.util.spec_from_file_location("faces", ROOT / "devtools" / "faces.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def namespaces() -> Iterator[type]:
    """The classes of the futures face: that of the engine with all that it has, and that of a run."""
    yield FutureRun
    yield FutureEngineCalls
    yield from (kind for kind in hints_of(FutureEngineCalls).values() if kind.__name__.startswith("Future"))


KINDS = list(namespaces())


def calls(kind: type) -> dict[str, inspect.Signature]:
    """The public calls of a class, inherited ones too."""
    return {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def twin(kind: type, face: str) -> type:
    """The class of another face that was made from one."""
    module, prefix = FACES[face]
    found: type = getattr(module, prefix + kind.__name__.removeprefix("Future"))
    return found


@pytest.mark.parametrize("face", FACES)
def test_the_committed_face_is_what_the_calls_make(face: str) -> None:
    """Whoever changes a call has the faces made anew and commits them."""
    made = generator()
    path = made.FACES / f"{face}.py"
    assert path.read_text(encoding="utf-8") == made.made(getattr(made, face.upper())), "run `python3 dev.py docs`"


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_call_is_in_every_face(kind: type, face: str) -> None:
    """With the same parameters and the same words; only what may take weeks can be waited for with a limit besides."""
    other = calls(twin(kind, face))
    assert other.keys() == calls(kind).keys()
    for name, signature in calls(kind).items():
        lasts = str(signature.return_annotation).startswith("CompletionReply[")
        wanted = [*signature.parameters, *(["timeout"] if lasts else [])]
        assert list(other[name].parameters) == wanted, name
        for parameter in signature.parameters.values():
            assert other[name].parameters[parameter.name] == parameter, name
        told, source = (inspect.getdoc(getattr(each, name)) for each in (twin(kind, face), kind))
        assert told is not None
        assert source is not None
        assert told.startswith(source), name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_calls_answer_as_their_face_says(kind: type) -> None:
    """A call gives a reply; the same call of the awaitable face is a coroutine function, of the blocking face it is not."""
    for name, signature in calls(kind).items():
        answers = str(signature.return_annotation)
        is_call = re.match(r"(Completion)?Reply\[", answers) is not None
        assert is_call or answers.startswith("Future"), name
        assert inspect.iscoroutinefunction(getattr(twin(kind, "aio"), name)) == is_call, name
        assert not inspect.iscoroutinefunction(getattr(twin(kind, "sync"), name)), name


def mentioned(hint: object) -> Iterator[object]:
    """A type and all types that it is made of."""
    yield hint
    for part in getattr(hint, "__args__", ()):
        yield from mentioned(part)


def shown(hint: object, seen: set[object]) -> Iterator[object]:
    """The types that a value of this type shows: itself, its parts, and the fields of the records among them."""
    for each in mentioned(hint):
        if each in seen:
            continue
        seen.add(each)
        yield each
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            for field in hints_of(each).values():
                yield from shown(field, seen)


def test_no_public_signature_mentions_a_record_of_the_store() -> None:
    """What callers give and get are values of their own: records of the store may change without anybody noticing."""
    found: set[str] = set()
    for kind in KINDS:
        for each in (kind, twin(kind, "sync"), twin(kind, "aio")):
            for name in calls(each):
                hints = hints_of(getattr(each, name)).values()
                found |= {
                    f"{each.__name__}.{name}: {part}"
                    for hint in hints
                    for part in shown(hint, set())
                    if str(getattr(part, "__module__", "")).startswith("standfast.store")
                }
    assert not found


def test_no_public_name_is_of_the_store() -> None:
    """The package exports no record of the store."""
    exported = {name: getattr(standfast, name) for name in standfast.__all__}
    assert not [name for name, value in exported.items() if str(value.__module__).startswith("standfast.store")]


def test_namespaces_are_plain_attributes() -> None:
    """They are made once, when somebody asks for one: from then on to look it up costs nothing, and there are no others."""
    whole = hints_of(FutureEngineCalls)
    engine = standfast.Engine("sqlite://", threads=False)
    try:
        for face in (engine, engine.futures, engine.aio):
            for name in whole:
                first = getattr(face, name)
                assert vars(face)[name] is first, name
            assert not hasattr(face, "anything")
    finally:
        engine.stop()


def test_runs_of_all_faces_are_handles_and_replies_are_replies() -> None:
    """A run is known by its id, of whichever face it is."""
    assert all(issubclass(each, Handle) for each in (FutureRun, blocking.Run, awaitable.AsyncRun))
    assert issubclass(standfast.Reply, Reply)
