"""Types that several threads read for the first time at once: msgspec does not survive that by itself, so each is looked at by one of them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator

from support.repository import ROOT, SOURCE

PROGRAM = """
import sys, threading, typing
import msgspec
from standfast.kernel.codec.codecs import JsonCodec, convert
from standfast.kernel.codec.type_cache import settled

sys.setswitchinterval(1e-6)
VALUE = {"inner": {"inner": {"inner": {"several": [{"number": 4}]}}}}
DATA = msgspec.json.encode(VALUE)
WAYS = 2 * [
    lambda kind: JsonCodec().decode(DATA, kind),
    lambda kind: convert(VALUE, kind),
    lambda kind: msgspec.json.decode(DATA, type=settled(kind)),
]

def family():
    made = msgspec.defstruct("Leaf", [("number", int)])
    for depth in range(8):
        made = msgspec.defstruct(f"Node{depth}", [("inner", typing.Optional[made], None), ("several", list[made], []), ("number", "int", 0)])
    return made

def read(way, kind, ready):
    ready.wait()
    way(kind)

for _ in range(20):
    kind, ready = family(), threading.Barrier(len(WAYS))
    threads = [threading.Thread(target=read, args=(way, kind, ready)) for way in WAYS]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""
READING = ("msgspec.convert", "msgspec.json.decode", "msgspec.msgpack.decode")
"""Functions that read; what they read it as is the second that they are given."""
BUILT_IN = {"dict", "list", "str", "object", "bool", "int", "float", "UUID", "TYPES", "kind"}
"""What msgspec has nothing to look at for."""


def test_threads_may_read_a_type_for_the_first_time_together() -> None:
    """The process lives, however they come between one another."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def bare_reading() -> Iterator[str]:
    """Where something is read as a type of which nobody has said that it is known."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.is_relative_to(SOURCE / "cli") or not any(f"{each}(" in text for each in READING):
            continue  # The command line has one thread.
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in READING and not _is_known(call):
                yield f"{path.relative_to(SOURCE)}: {ast.unparse(call)}"


def _is_known(call: ast.Call) -> bool:
    kinds = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "type")]
    names = {each.id for kind in kinds for each in ast.walk(kind) if isinstance(each, ast.Name)}
    return "settled" in names or names <= BUILT_IN


def test_whatever_is_read_as_a_type_says_that_it_is_known() -> None:
    """A type of the package or of the user's is `settled` where it is given to msgspec."""
    looked_at_by_import = "expressions/expression.py: msgspec.convert(data, _Stored)"
    assert list(bare_reading()) == [looked_at_by_import]
