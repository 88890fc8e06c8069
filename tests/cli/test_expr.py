from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from standfast.cli import main

ORDER = {"entity": {"grand_total": 25000, "due": "2026-03-31"}, "actor": {"roles": ["finance_manager"]}}

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `standfast expr` over an order; other data can be given as text for standard input."""
    file = tmp_path / "order.json"
    file.write_text(json.dumps(ORDER), encoding="utf-8")

    def expr(*arguments: str, stdin: str | bytes | None = None) -> Result:
        data = [] if "--data" in arguments else ["--data", "-" if stdin is not None else str(file)]
        return CliRunner().invoke(main, ["expr", *arguments, *data], input=stdin)

    return expr


def test_it_evaluates_and_explains(run: Run) -> None:
    """The expression, what it read and what came out are printed; a true condition ends with exit code 0."""
    result = run("entity.grand_total > 10000 && actor.roles contains 'finance_manager'")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "entity.grand_total > 10000 && actor.roles contains 'finance_manager'",
        "  entity.grand_total = 25000",
        '  actor.roles = ["finance_manager"]',
        "true",
    ]


def test_false_has_an_exit_code_of_its_own(run: Run) -> None:
    """A script can tell false from true and from an error."""
    result = run("entity.grand_total > 99999")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "false")


def test_a_mistake_is_pointed_at(run: Run) -> None:
    """A wrong expression is printed with a caret under the mistake, on standard error."""
    result = run("entity.grand_total = 5")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines()[:2] == ["entity.grand_total = 5", "                   ^"]


def test_a_failed_evaluation_is_pointed_at(run: Run) -> None:
    """What was read before the failure is printed, then the caret under what failed."""
    result = run("entity.grand_total > 1 && entity.nope > 1")
    assert result.exit_code == 2
    assert result.stdout.splitlines()[1:] == ["  entity.grand_total = 25000", "  entity.nope = (absent)"]
    assert "there is no 'entity.nope' in the data [missing_value]" in result.stderr


@pytest.mark.parametrize(
    ("spelling", "source"),
    [
        ("go", "{{ gt .entity.grand_total 10000 }}"),
        ("json", '{"field": "entity.grand_total", "operator": "gt", "value": 10000}'),
        ("native", "entity.grand_total > 10000"),
    ],
)
def test_every_spelling_is_understood(run: Run, spelling: str, source: str) -> None:
    """The same condition can be tried in each spelling."""
    result = run(source, "--spelling", spelling)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "true")


@pytest.mark.parametrize(
    ("spelling", "source", "shown"),
    [
        ("mapping", "entity.grand_total", "25000"),
        ("mapping", "entity.nope", "null"),
        ("template", "order of {entity.grand_total}", '"order of 25000"'),
    ],
)
def test_values_are_printed(run: Run, spelling: str, source: str, shown: str) -> None:
    """A mapping or a template prints its value and ends with exit code 0."""
    result = run(source, "--spelling", spelling)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, shown)


@pytest.mark.row("E-618")
def test_now_is_given(run: Run) -> None:
    """`now` is what the caller says it is; without it an expression over it fails."""
    assert run("entity.due < now", "--now", "2026-04-01T00:00:00Z").exit_code == 0
    assert run("entity.due < now", "--now", "2026-03-31T23:59:59+00:00").exit_code == 1
    assert "there is no 'now' in the data" in run("entity.due < now").stderr


@pytest.mark.parametrize(("now", "message"), [("soon", "ISO 8601"), ("2026-04-01T00:00:00", "time zone")])
def test_a_wrong_now_is_refused(run: Run, now: str, message: str) -> None:
    """A moment that cannot be read, or has no zone, is refused with an example."""
    result = run("true", "--now", now)
    assert result.exit_code == 2
    assert message in result.stderr


def test_leniency_is_a_choice(run: Run) -> None:
    """Strictness and leniency override the custom of the spelling."""
    assert run("entity.nope < 5", "--lenient").exit_code == 0
    assert run("entity.nope < 5").exit_code == 2
    assert run("{{ lt .nope 5 }}", "--spelling", "go").exit_code == 0
    assert run("{{ lt .nope 5 }}", "--spelling", "go", "--strict").exit_code == 2


def test_the_audit_record_can_be_printed(run: Run) -> None:
    """`--json` prints the record that the engine would store."""
    result = run("entity.grand_total > 10000", "--json")
    assert json.loads(result.stdout) == {
        "expression": "entity.grand_total > 10000",
        "variables": {"entity.grand_total": 25000},
        "result": True,
    }
    failed = run("entity.nope > 1", "--json")
    assert failed.exit_code == 2
    assert json.loads(failed.stdout)["failure"]["reason"] == "missing_value"


def test_data_can_come_from_standard_input(run: Run) -> None:
    """`-` reads the data from standard input, also with a byte order mark."""
    assert run("a > 1", stdin='{"a": 2}').exit_code == 0
    assert run("a > 1", stdin=b'\xef\xbb\xbf{"a": 2}').exit_code == 0


def test_data_is_optional() -> None:
    """An expression without variables needs no data."""
    assert CliRunner().invoke(main, ["expr", "1 < 2"]).exit_code == 0


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("", "is not JSON"),
        ("{", "line 1 column 2"),
        ('{"a": 1, "a": 2}', "the name 'a' stands twice"),
        ("[1]", "must hold a JSON object"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        (b"\xff\xfe", "is not JSON"),
        ('{"a":' * 100_000, "is not JSON"),
        ('{"a": ' + "1" * 5000 + "}", "is not JSON"),
    ],
)
def test_malformed_data_is_named(run: Run, stdin: str | bytes, message: str) -> None:
    """Data that is not a JSON object is refused with the place where it stops being one, never with a traceback."""
    result = run("a > 1", stdin=stdin)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("standard input")


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_an_unreadable_file_is_named(run: Run, tmp_path: Path, name: str) -> None:
    """A file that is not there, or is no file, is refused by name."""
    result = run("a > 1", "--data", str(tmp_path / name))
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


def test_the_terminal_is_safe_from_the_data(run: Run) -> None:
    """Control characters in the data are printed as escapes."""
    result = run("a != null", stdin='{"a": "\\u001b[2J\\u202e\x9b"}')
    assert result.exit_code == 0
    assert not set("\x1b\u202e\x9b") & set(result.stdout)


def test_help_names_the_exit_codes() -> None:
    """The help says what the exit codes mean."""
    text = CliRunner().invoke(main, ["expr", "--help"]).stdout
    assert "Exit code 0" in text


def test_the_data_may_be_given_itself(run: Run) -> None:
    """As with every other command: an object, or a file behind an @."""
    assert run("total > 3", "--data", '{"total": 5}').exit_code == 0
    assert "what was given is not JSON" in run("total > 3", "--data", '{"total": ').stderr
