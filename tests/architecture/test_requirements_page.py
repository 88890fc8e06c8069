"""The page of requirements says which tests defend which rows, read from the sources alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.repository import load_generator

generate = load_generator()

PLACE = "tests/test_sample.py"


def marks(source: str) -> set[tuple[str, str]]:
    """The marks of a sample file as (row, test)."""
    return {(mark.row, mark.test.removeprefix(PLACE)) for mark in generate.marks_in(source, PLACE)}


def test_decorators_mark_functions_and_classes() -> None:
    """A decorator marks what it decorates, with each of its ids."""
    source = """
@pytest.mark.row("D-001", "D-002")
async def test_one(): ...

@pytest.mark.row("D-003")
class TestGroup:
    @other
    @pytest.mark.row("D-004")
    def test_two(self): ...
"""
    assert marks(source) == {
        ("D-001", "::test_one"),
        ("D-002", "::test_one"),
        ("D-003", "::TestGroup"),
        ("D-004", "::TestGroup::test_two"),
    }


@pytest.mark.parametrize("value", ['pytest.mark.row("D-001")', '[pytest.mark.long, pytest.mark.row("D-001")]'])
def test_a_module_can_be_marked(value: str) -> None:
    """`pytestmark` marks the file, alone or in a list."""
    assert marks(f"pytestmark = {value}") == {("D-001", "")}


def test_a_parameter_can_be_marked() -> None:
    """A mark on one parameter set counts for the test that takes it."""
    source = '@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.row("D-001"))])\ndef test_one(n): ...'
    assert marks(source) == {("D-001", "::test_one")}


def test_comments_inside_a_test_mark_it() -> None:
    """A comment names rows for the test around it, also in a test that only some platforms have."""
    source = """
def test_one():
    # D-001, D-002
    x = 1  # D-003: the reason

if sys.platform == "linux":
    class TestGroup:
        def test_two(self):
            # D-004
            pass
"""
    assert marks(source) == {
        ("D-001", "::test_one"),
        ("D-002", "::test_one"),
        ("D-003", "::test_one"),
        ("D-004", "::TestGroup::test_two"),
    }


def test_texts_and_other_comments_are_not_marks() -> None:
    """Only a comment that begins with ids is a mark; strings and sentences are not."""
    assert marks('def test_one():\n    # see D-001\n    # D-001 is hard\n    x = "# D-001"\n') == set()


def test_a_lost_comment_is_an_error() -> None:
    """A comment that names rows outside of any test would count for nothing, so it is refused with its place."""
    with pytest.raises(generate.PageError, match=rf"{PLACE}:2: .* D-001"):
        marks("x = 1\n# D-001\n")


def test_computed_ids_are_an_error() -> None:
    """Ids must be readable without running the test."""
    with pytest.raises(generate.PageError, match="plain strings"):
        marks("@pytest.mark.row(ID)\ndef test_one(): ...")


def test_unknown_ids_are_an_error() -> None:
    """A mark for a row that does not exist is a slip of the pen."""
    with pytest.raises(generate.PageError, match="D-999"):
        generate.render_requirements(
            {"D-001": generate.Row("title", "open", "later")}, [generate.Mark("D-999", "tests/a.py::test_one")]
        )


def test_the_page_shows_titles_verdicts_and_tests() -> None:
    """Each row has its title, its verdict with the note, and at most three tests; each section is summed up."""
    text = "D-001 proved a | b\nD-002 partly second\n    one clause\n    is missing\nD-003 open third\n    later\n"
    rows = generate.read_rows(text)
    found = [generate.Mark("D-001", f"tests/a.py::test_{n}") for n in (5, 4, 3, 2, 1, 1)]
    page = generate.render_requirements(rows, found)
    cell = "`tests/a.py::test_1`, `tests/a.py::test_2`, `tests/a.py::test_3`, +2"
    assert rf"| D-001 | a \| b | proved | {cell} |" in page
    assert "| D-002 | second | partly: one clause is missing | none |" in page
    assert "- D: 1 proved, 1 partly, 1 open; 3 rows\n" in page
    assert page == generate.render_requirements(rows, reversed(found))


def test_what_is_only_said_is_shown_apart() -> None:
    """A test that finds a row on a page stands behind the tests that see it done."""
    source = '@pytest.mark.documents("D-001", "D-002")\n@pytest.mark.row("D-001")\ndef test_one(): ...'
    found = list(generate.marks_in(source, PLACE))
    page = generate.render_requirements(generate.read_rows("D-001 proved first\nD-002 documented second\n"), found)
    name = f"`{PLACE}::test_one`"
    assert f"| D-001 | first | proved | {name}, documented: {name} |" in page
    assert f"| D-002 | second | documented | documented: {name} |" in page


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("D-001 proved first", "no test cites it"),
        ("D-001 documented first", "no test finds it"),
        ("D-001 partly first", "needs a note"),
        ("D-001 otherwise first", "needs a note"),
        ("D-001 first", "no row and no note"),
        ("    a note without a row", "no row and no note"),
    ],
)
def test_a_verdict_needs_its_support(text: str, problem: str) -> None:
    """A row is proved only if a test cites it, and whatever is missing is said."""
    with pytest.raises(generate.PageError, match=problem):
        generate.render_requirements(generate.read_rows(text), [])


def test_the_list_of_rows_is_complete() -> None:
    """Every section counts from 001 without a repetition; only documents have gaps, as their ids come in blocks."""
    text = (generate.DOCS / "requirements-rows.txt").read_text(encoding="utf-8")
    rows = generate.read_rows(text)
    assert len(rows) == sum(not line.startswith(" ") for line in text.splitlines())
    sizes = {letter: sum(row.startswith(letter) for row in rows) for letter in generate.SECTIONS}
    assert sizes == {"D": 125, "F": 262, "P": 170, "R": 145, "E": 639, "C": 51, "G": 45}


def test_a_stale_page_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check names the stale page and the remedy and writes nothing; writing makes the check pass."""
    monkeypatch.setattr(generate, "DOCS", tmp_path)
    monkeypatch.setattr(generate, "PAGES", {"page.md": lambda: "text\n"})
    monkeypatch.setattr(generate, "REPORTS", {})
    assert generate.main(["--check"]) == 1
    assert "docs/page.md is stale: run `python3 dev.py docs`" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_the_report_is_made_from_the_rows_and_the_tests() -> None:
    """The report is not committed, so the check makes it anew: every verdict of the real rows has its support."""
    page = generate.REPORTS["reports/requirements.md"]()
    assert page.startswith("# Requirements and the tests that defend them\n")
    assert page.count("\n| D-") == 125
