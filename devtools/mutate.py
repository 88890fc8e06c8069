"""Plants bugs, one at a time, and reports which of them no test notices.

    python devtools/mutate.py --seed 20261120 --count 150

Bugs are chosen from the seed: the same seed and the same tree are the same bugs. The first call runs the tests once, on SQLite, to find
out which of them come to which lines (`hits.py`; half an hour, kept in `.mutants/`; `--map` makes it anew). Each bug is planted into a copy of
the tree, never into the tree itself, and only the tests that come to its block are run: at first some of each file, and if none of those fails, the
rest. A test that fails, or takes too long, has noticed it.

Bugs that change nothing anybody could notice are written down in `mutants-equivalent.txt`, with the reason, and are counted apart.
The exit code is 1 if a bug went unnoticed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import count, zip_longest
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from devtools.mutants import Mutant, compiles, mutants_of  # noqa: E402 - found from the root of the repository

SEED: Final = 20261120
PACKAGES: Final = (
    "machine",
    "features/schedules/model",
    "features/batches/model",
    "people",
    "outbound",
    "app",
    "authoring",
    "http",
    "cli",
)
"""What is broken if nothing else is asked for."""
FOLDER: Final = ROOT / ".mutants"
EQUIVALENT: Final = Path(__file__).with_name("mutants-equivalent.txt")
LEFT_OUT: Final = (
    "tests/architecture",
    "tests/bench",
    "tests/chaos",
    "tests/deploy",
    "tests/devserver",
    "tests/examples",
)
"""Tests that look at the sources, or at processes of their own, of which nothing is seen."""
OF_DECLARATIONS: Final = "tests/app/test_declarations.py"
"""Tests that import every module and look at what it declares: they come to whatever is run when a module is imported."""
FIRST_SECONDS: Final = 30.0
"""So much time have the tests of the first round, as long as they took when the map was made."""
REST_SECONDS: Final = 400.0
SLOWNESS: Final = 4
"""So many times as long as it took a test may take, on a machine that does something else too."""
START_SECONDS: Final = 60.0


class Verdict(NamedTuple):
    """What became of one bug."""

    mutant: Mutant
    status: str
    """`caught`, `survived`, `unreached` if no test comes there, or `equivalent`."""
    by: str = ""
    """The test that noticed it, or the reason why nobody can."""
    tests: int = 0
    seconds: float = 0.0


class Map:
    """Which tests come to which blocks."""

    def __init__(self, file: Path) -> None:
        read = json.loads(file.read_text(encoding="utf-8"))
        self.tests: list[tuple[str, float]] = [(name, seconds) for name, seconds in read["tests"]]
        self._blocks: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for file_, first, last, tests in read["blocks"]:
            self._blocks[file_].append((first, last, int(tests, 16)))

    def reaching(self, mutant: Mutant) -> list[int]:
        """The tests that come to the smallest block that the bug is in; for what is run at import, to any of its module, or that look at every one."""
        blocks = self._blocks[mutant.file]
        around = [each for each in blocks if each[0] <= mutant.line <= each[1]]
        if not around:
            found = sum(1 << each for each in self.of_declarations)
            for _, _, tests in blocks:
                found |= tests
            return _numbers(found)
        return _numbers(min(around, key=lambda each: each[1] - each[0])[2])

    @property
    def of_declarations(self) -> list[int]:
        """The tests that import every module."""
        return [place for place, each in enumerate(self.tests) if each[0].startswith(OF_DECLARATIONS)]

    def ordered(self, tests: Iterable[int]) -> list[int]:
        """Those of each file in turn, the short ones first: a bug is mostly noticed by many tests of one file."""
        by_file: dict[str, list[int]] = defaultdict(list)
        for each in sorted(tests, key=lambda number: self.tests[number][1]):
            by_file[self.tests[each][0].partition("::")[0]].append(each)
        first = by_file.pop(OF_DECLARATIONS, [])
        return [*first, *(each for row in zip_longest(*by_file.values()) for each in row if each is not None)]


def _numbers(mask: int) -> list[int]:
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


# -- the map


def make_map(file: Path, jobs: int) -> None:
    """Run the tests once, and write down where they come."""
    file.parent.mkdir(exist_ok=True)
    for each in file.parent.glob(f"{file.name}.*"):
        each.unlink()
    print("Finding out which tests come where (once) ...", flush=True)
    ignored = [f"--ignore={each}" for each in LEFT_OUT]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "devtools.hits", "-m", "not long", "-k", "not postgres"]
    environment = {**os.environ, "HITS": str(file), "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, "-n", str(jobs), *ignored, "tests"], cwd=ROOT, env=environment, check=False)
    write_map(file, [json.loads(each.read_text()) for each in file.parent.glob(f"{file.name}.*")])


def write_map(file: Path, parts: Sequence[dict[str, list[list[object]] | dict[str, tuple[float, list[int]]]]]) -> None:
    """One map of what each process has seen."""
    tests: list[tuple[str, float]] = []
    masks: dict[tuple[object, ...], int] = defaultdict(int)
    for part in parts:
        blocks, seen = part["blocks"], part["tests"]
        assert isinstance(blocks, list)
        assert isinstance(seen, dict)
        for block in blocks:
            masks[tuple(block)] |= 0
        for name, (seconds, hits) in seen.items():
            for each in hits:
                masks[tuple(blocks[each])] |= 1 << len(tests)
            tests.append((name, round(seconds, 3)))
    written = {"tests": tests, "blocks": [[*block, f"{mask:x}"] for block, mask in masks.items()]}
    file.write_text(json.dumps(written), encoding="utf-8")


# -- the choice


def chosen(seed: int, wanted: int, packages: Sequence[str]) -> list[Mutant]:
    """Bugs by chance: of small packages more than their share, and of each kind that a module has as many as of any other."""
    chance = random.Random(seed)
    files = {package: list(_files(package)) for package in packages}
    weights = [math.sqrt(sum(len(each.read_text(encoding="utf-8")) for each in files[package])) for package in packages]
    known: dict[Path, dict[str, list[Mutant]]] = {}
    found: dict[str, Mutant] = {}
    while len(found) < wanted:
        (package,) = chance.choices(packages, weights)
        sizes = [each.stat().st_size for each in files[package]]
        (file,) = chance.choices(files[package], sizes)
        if file not in known:
            known[file] = _by_kind(file)
        if not known[file]:
            continue
        mutant = chance.choice(known[file][chance.choice(sorted(known[file]))])
        if compiles(mutant.planted(file.read_text(encoding="utf-8"))):
            found[mutant.id + mutant.after] = mutant
    return list(found.values())


def _by_kind(file: Path) -> dict[str, list[Mutant]]:
    found: dict[str, list[Mutant]] = defaultdict(list)
    for each in mutants_of(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")):
        found[each.kind].append(each)
    return found


def _files(package: str) -> Iterator[Path]:
    for file in sorted((ROOT / "src/standfast" / package).rglob("*.py")):
        if "# Generated by devtools/" not in file.read_text(encoding="utf-8")[:2000]:
            yield file


def equivalents() -> dict[tuple[str, str, str], str]:
    """Bugs that nobody can notice, by file (`*` for all), what stands there and what would stand there instead; and why."""
    found: dict[tuple[str, str, str], str] = {}
    if not EQUIVALENT.exists():
        return found
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            file, before, after, reason = line.split(" | ", 3)
            found[file, before, after] = reason
    return found


def marked_line(mutant: Mutant) -> str:
    """The line that a bug is planted into, with what it replaces marked; empty if that is several lines."""
    (first, begin), (last, end) = mutant.start, mutant.end
    if first != last:
        return ""
    line = (ROOT / mutant.file).read_text(encoding="utf-8").splitlines()[first - 1].encode()
    return f"{line[:begin].decode()}⟦{line[begin:end].decode()}⟧{line[end:].decode()}"


def in_one_line(text: str) -> str:
    """Code as it stands in a table."""
    return " ".join(text.split())


# -- the trial


class Copy:
    """A copy of the tree that bugs are planted into."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        self._stamps = count(int(time.time()))

    def tried(self, mutant: Mutant, tests: Sequence[str], seconds: float) -> str | None:
        """The first test that notices a bug; None if none does."""
        file = self._folder / mutant.file
        source = file.read_text(encoding="utf-8")
        self._write(file, mutant.planted(source))
        try:
            return self._failing(tests, seconds)
        finally:
            self._write(file, source)

    def _write(self, file: Path, text: str) -> None:
        """Each time with a time of its own, by which Python knows that what it has compiled is stale."""
        file.write_text(text, encoding="utf-8")
        stamp = next(self._stamps)
        os.utime(file, (stamp, stamp))

    def _failing(self, tests: Sequence[str], seconds: float) -> str | None:
        listed = self._folder / "mutate-tests.txt"
        listed.write_text("\n".join(tests), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "--tb=no",
            "-o",
            "timeout=60",
            f"@{listed}",
        ]
        environment = {**os.environ, "PYTHONPATH": str(self._folder / "src"), "HYPOTHESIS_DATABASE_FILE": ""}
        process = subprocess.Popen(
            command,
            cwd=self._folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            told, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return f"none in {seconds:.0f} s"
        failed = [line for line in told.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return None if not process.returncode else failed[0] if failed else f"exit code {process.returncode}"


class Trial:
    """Tries bugs in several copies at the same time."""

    def __init__(self, known: Map, jobs: int) -> None:
        self._map = known
        self._jobs = jobs
        self._copies: SimpleQueue[Copy] = SimpleQueue()

    def of(self, mutants: Sequence[Mutant]) -> Iterator[Verdict]:
        """What becomes of each."""
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(self._jobs) as pool:
            for number in range(self._jobs):
                self._copies.put(Copy(Path(folder) / str(number)))
            yield from pool.map(self._judged, mutants)

    @cached_property
    def _equivalents(self) -> dict[tuple[str, str, str], str]:
        return equivalents()

    def _why_equivalent(self, mutant: Mutant) -> str:
        """Why nobody can notice a bug; empty if somebody can. A place inside of a line is marked, as in `limit=size + ⟦1⟧`."""
        marked, after = marked_line(mutant), in_one_line(mutant.after)
        for (file, before, instead), reason in self._equivalents.items():
            is_there = before in marked if "⟦" in before else before == in_one_line(mutant.before)
            if file in {"*", mutant.file} and instead == after and is_there:
                return reason
        return ""

    def _judged(self, mutant: Mutant) -> Verdict:
        reason = self._why_equivalent(mutant)
        if reason:
            return Verdict(mutant, "equivalent", reason)
        reaching = self._map.ordered(self._map.reaching(mutant))
        tests = reaching or self._map.of_declarations  # What runs only when a module is imported is of no test.
        copy, began, tried = self._copies.get(), time.monotonic(), 0
        try:
            for some in self._rounds(tests):
                tried += len(some)
                seconds = START_SECONDS + SLOWNESS * sum(self._map.tests[each][1] for each in some)
                by = copy.tried(mutant, [self._map.tests[each][0] for each in some], seconds)
                if by is not None:
                    return Verdict(mutant, "caught", by, tried, time.monotonic() - began)
        finally:
            self._copies.put(copy)
        return Verdict(mutant, "survived" if reaching else "unreached", "", tried, time.monotonic() - began)

    def _rounds(self, tests: Sequence[int]) -> Iterator[list[int]]:
        """The tests that are run first, and then the others."""
        left = list(tests)
        for seconds in (FIRST_SECONDS, REST_SECONDS):
            some: list[int] = []
            spent = 0.0
            while left and (not some or spent < seconds):
                spent += self._map.tests[left[0]][1]
                some.append(left.pop(0))
            if some:
                yield some


# -- the report


def told(verdict: Verdict) -> str:
    """A verdict as a reader sees it."""
    mutant = verdict.mutant
    change = f"    {in_one_line(mutant.before)}\n  → {in_one_line(mutant.after)}"
    head = f"{verdict.status}: {mutant.file}:{mutant.line} {mutant.kind}"
    if verdict.status == "caught":
        return f"{head}\n    {verdict.by}"
    return f"{head} ({verdict.tests} tests)\n{change}" + (f"\n    {verdict.by}" if verdict.by else "")


def report(verdicts: Sequence[Verdict]) -> int:
    """Print what came of all; the exit code."""
    counts = Counter(each.status for each in verdicts)
    real = len(verdicts) - counts["equivalent"]
    print(
        f"\n{counts['caught']} of {real} caught ({counts['caught'] / max(real, 1):.0%}), {counts['equivalent']} equivalent."
    )
    for each in verdicts:
        if each.status in {"survived", "unreached"}:
            print(told(each))
    return 1 if real > counts["caught"] else 0


def main(words: Sequence[str]) -> int:
    """Choose bugs, try them, and report."""
    parser = argparse.ArgumentParser(description="Plant bugs, and report which of them no test notices.")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument(
        "--package", action="append", help=f"one of src/standfast; several times. If none: {', '.join(PACKAGES)}"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--map", action="store_true", help="find out anew which tests come where")
    parser.add_argument("--list", action="store_true", help="only print the bugs")
    parser.add_argument("--report", type=Path, help="write what became of each bug to this file, as JSON")
    given = parser.parse_args(words)
    mutants = chosen(given.seed, given.count, given.package or PACKAGES)
    if given.list:
        for each in mutants:
            print(f"{each.id}\n    {in_one_line(each.before)}\n  → {in_one_line(each.after)}")
        return 0
    file = FOLDER / "map.json"
    if given.map or not file.exists():
        make_map(file, given.jobs)
    verdicts: list[Verdict] = []
    for verdict in Trial(Map(file), given.jobs).of(mutants):
        verdicts.append(verdict)
        print(f"{len(verdicts)}/{len(mutants)} {told(verdict)}", flush=True)
    if given.report:
        given.report.write_text(json.dumps([each._asdict() for each in verdicts], indent=1), encoding="utf-8")
    return report(verdicts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
