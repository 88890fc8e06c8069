"""The one door to this repository: sets up `.venv` from the lock file, then runs a task in it.

    python3 dev.py run      try Standfast: an order that is undone although its worker is killed half-way; then a server with samples to
                            look at, until Ctrl-C (--exit ends after the order, --port and --folder are for the server)
    python3 dev.py test     all tests, and the checks beside them (arguments after `test` go to pytest; --long adds the slow campaigns;
                            --level unit runs the tests that need no engine, in a minute; tests/README.md has the other levels)
    python3 dev.py check    formatting, lint, types, layers, generated code and pages
    python3 dev.py bench    the benchmark (see bench/README.md)
    python3 dev.py docs     write the generated code and pages anew (--site builds the documentation site into site/)
    python3 dev.py schema   write the pictures of the schema anew
    python3 dev.py lock     write dev.lock anew from pyproject.toml

Only the standard library is used here, so that a fresh clone needs nothing but Python 3.11 and pip.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
LOCK = ROOT / "dev.lock"
DATA = ROOT / "standfast-dev"
"""Where the server of `run` keeps its data."""
MINIMUM = (3, 11)
INTERRUPTED = 130
LEVELS = ("unit", "model", "engine", "fault")
"""Levels of tests, from fast to slow."""
PROCESSES = str((os.cpu_count() or 1) + 1)
"""Of tests. A test waits for a server or a clock for a part of its time, so one more than there are processors keeps them busy."""
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where tests keep their files: in memory where there is such a folder, so that no commit waits for a disk."""
PATIENCE = 10.0
"""Seconds that a program has to come to its end after Ctrl-C, which it hears of by itself."""


def main(arguments: list[str]) -> int:
    """Run the task named by the first argument; its exit code is ours."""
    task = TASKS.get(arguments[0]) if arguments else None
    if task is None:
        print(__doc__)
        return 0 if arguments[:1] in ([], ["help"], ["--help"], ["-h"]) else 2
    if sys.version_info < MINIMUM:
        print(f"Standfast needs Python {MINIMUM[0]}.{MINIMUM[1]} or newer; this is {sys.version.split()[0]}.")
        return 2
    try:
        prepare()
        return task(arguments[1:])
    except KeyboardInterrupt:
        return INTERRUPTED
    except subprocess.CalledProcessError as error:
        print(
            f"This did not work: {' '.join(map(str, error.cmd))}. What it said stands above; mend that, and call this again."
        )
        return 1


def prepare() -> None:
    """Make `.venv` match the lock file; does nothing when it already does."""
    wanted = fingerprint()
    stamp = VENV / "standfast-stamp"
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    print("Setting up .venv (once per change of dev.lock) ...", flush=True)
    if not has_pip():  # As it is where making it was interrupted, or failed.
        make_environment()
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    locked = [*pip, "--require-hashes", "--no-deps", "-r"]
    halves = [subprocess.Popen([*locked, str(each)], cwd=ROOT) for each in halved()]
    for each in halves:
        each.wait()
    # Whatever a half has left undone is done here, or told; mostly there is nothing left.
    subprocess.run([*locked, str(LOCK)], check=True, cwd=ROOT)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", "."], check=True, cwd=ROOT)
    stamp.write_text(wanted)


def has_pip() -> bool:
    """Whether there is an environment that something can be installed into."""
    command = [str(PYTHON), "-m", "pip", "--version"]
    return PYTHON.exists() and subprocess.run(command, check=False, capture_output=True).returncode == 0


def make_environment() -> None:
    """An empty environment, whatever was there before."""
    try:
        venv.EnvBuilder(with_pip=True, clear=True).create(VENV)
    except subprocess.CalledProcessError:
        print("This Python cannot make environments; on Debian and Ubuntu that takes: apt install python3-venv")
        raise


def halved() -> list[Path]:
    """The lock file as two, so that both are installed at the same time: pip alone keeps one processor busy, and the network waiting."""
    packages = re.split(r"^(?=\w)", LOCK.read_text(), flags=re.MULTILINE)
    middle = len(packages) // 2
    files = [VENV / "lock-1.txt", VENV / "lock-2.txt"]
    for file, some in zip(files, (packages[:middle], packages[middle:]), strict=True):
        file.write_text("".join(some))
    return files


def fingerprint() -> str:
    """What the environment was made from: the lock, the project's metadata and this interpreter."""
    digest = hashlib.sha256()
    for part in (LOCK.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), sys.version.encode()):
        digest.update(part)
    return digest.hexdigest()


def tool(*command: str) -> int:
    """Run a program of the environment from the repository's root."""
    process = subprocess.Popen([str(BIN / command[0]), *command[1:]], cwd=ROOT, env=surroundings())
    try:
        return process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(PATIENCE)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            process.kill()
        return INTERRUPTED


def surroundings() -> dict[str, str]:
    """Our variables, but for the wish to keep no compiled modules: each of hundreds of processes would compile the package for itself."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(arguments: list[str]) -> int:
    """Show a newcomer what Standfast does: tell the story of an order, and stay as a server to look at."""
    code = tool("python", "examples/order_saga.py")
    if code or "--exit" in arguments:
        return code
    print(
        "\n  The rest is for you to look at: a server, a worker, and workflows of several kinds that are under way.\n"
    )
    sys.stdout.flush()
    return stay([str(BIN / "python"), "-m", "standfast.cli", "dev", "--folder", str(DATA), *arguments])


def stay(command: list[str]) -> int:
    """Become another program where that can be done, so that Ctrl-C is for it alone and it ends as it likes."""
    os.chdir(ROOT)
    if os.name == "posix":
        os.execv(command[0], command)
    return subprocess.run(command, check=False).returncode


def check(_arguments: list[str]) -> int:
    """Everything that can be judged without running the product."""
    told, code = checked()
    print(told, flush=True)
    return code


def checked() -> tuple[str, int]:
    """What all checks have to say, and their code."""
    steps = (
        ("ruff", "format", "--check", "--quiet", "."),
        ("ruff", "check", "--quiet", "."),
        ("mypy",),
        ("lint-imports",),
        ("python", "devtools/faces.py", "--check"),
        ("python", "devtools/client.py", "--check"),
        ("python", "docs/generate.py", "--check"),
    )
    done = [
        subprocess.run(
            [str(BIN / step[0]), *step[1:]],
            check=False,
            cwd=ROOT,
            env=surroundings(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for step in steps
    ]
    failed = [" ".join(step) for step, each in zip(steps, done, strict=True) if each.returncode]
    verdict = f"check: {'all good' if not failed else 'failed: ' + '; '.join(failed)}"
    return "\n".join([*(each.stdout.strip() for each in done if each.stdout.strip()), verdict]), 1 if failed else 0


def test(arguments: list[str]) -> int:
    """The checks, and beside them pytest. With arguments of its own pytest runs alone, for the quick loop at the desk."""
    long = "--long" in arguments
    rest = [word for word in arguments if word != "--long"]
    chosen = "long or not long" if long else "not long"
    if "--level" in rest:
        at = rest.index("--level")
        level = rest[at + 1] if at + 1 < len(rest) else ""
        if level not in LEVELS:
            print(f"--level takes one of {', '.join(LEVELS)}; tests/README.md describes them.")
            return 2
        rest[at : at + 2] = []
        chosen = f"({chosen}) and {level}"
        if not rest:
            return tool("pytest", "-n", str(os.cpu_count() or 1), "--dist", "worksteal", "-m", chosen)
    marks = [] if "-m" in rest else ["-m", chosen]
    if long:
        os.environ.setdefault("STANDFAST_RACES", "200")
    if rest:
        return tool("pytest", *marks, *rest)
    with ThreadPoolExecutor(1) as aside:
        checks = aside.submit(checked)
        if not any((ROOT / "tests").rglob("*-pytest-*.pyc")):  # Compiled once, not by each of the processes below.
            subprocess.run(
                [str(BIN / "pytest"), "--collect-only", "-qq"],
                check=False,
                cwd=ROOT,
                env=surroundings(),
                stdout=subprocess.DEVNULL,
            )
        with tempfile.TemporaryDirectory(prefix="standfast-tests-", dir=MEMORY) as folder:
            code = tool("pytest", "-n", PROCESSES, "--dist", "worksteal", f"--basetemp={folder}/files", *marks)
        told, verdict = checks.result()
    print(told, flush=True)
    return max(code, verdict)


def bench(arguments: list[str]) -> int:
    """The benchmark; `bench expressions` compares the expression language with others, `bench spiff` is what advances are compared with, `bench sizes` says what a document takes."""
    if arguments[:1] == ["expressions"]:
        return tool("python", "bench/expressions.py", *arguments[1:])
    if arguments[:1] == ["sizes"]:
        return tool("python", "-m", "bench.sizes", *arguments[1:])
    if arguments[:1] == ["spiff"]:
        return tool("python", "bench/spiff.py", *arguments[1:])
    return tool("python", "bench/run.py", *arguments)


def docs(arguments: list[str]) -> int:
    """Write anew what is generated: the faces of the engine from its calls, the client's from the routes, and pages; `--site` builds the site too."""
    scripts = ("devtools/faces.py", "devtools/client.py", "docs/generate.py")
    code = max(tool("python", script) for script in scripts)
    return code or (tool("mkdocs", "build", "--quiet") if "--site" in arguments else 0)


def schema(_arguments: list[str]) -> int:
    """Write down anew what the migrations come to."""
    return tool("python", "docs/schema.py")


def lock(_arguments: list[str]) -> int:
    """Resolve the dependencies anew; needs uv on the path."""
    command = ["uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-header", "--no-annotate"]
    options = ["--python-version", "3.11", "--all-extras", "--group", "dev", "--upgrade"]
    return subprocess.run([*command, *options, "pyproject.toml", "-o", str(LOCK)], check=False, cwd=ROOT).returncode


TASKS: dict[str, Callable[[list[str]], int]] = {
    "run": run,
    "test": test,
    "check": check,
    "bench": bench,
    "docs": docs,
    "schema": schema,
    "lock": lock,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
