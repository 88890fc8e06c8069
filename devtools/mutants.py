"""Bugs that can be planted into a module: each is a place, a kind, and what stands there instead.

A module is read as a tree, every bug is a change of one expression or statement of it, and the text of the module is changed at that
place alone. Generated modules, docstrings, type hints, assertions and what is logged are left as they are.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Final, NamedTuple

SWAPPED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
"""What stands in the place of a comparison: one step beside it, or its opposite."""
_UNSEEN: Final = frozenset(
    {"strict", "encoding", "errors", "help", "metavar", "stacklevel", "exc_info", "daemon", "hint", "remedy"}
)
"""Keywords that make a difference to people alone, or where something else is wrong already."""
_BOUNDS: Final = ("MOST", "MAX", "LIMIT", "LONGEST", "LARGEST", "LEAST")
"""Parts of the names of those constants of a module that are a promise; others are chosen for speed."""
_SILENT: Final = ("_log", "logger", "logging", "warnings", "click.echo", "complain")
"""What begins the name of a call that tells people something; tests need not notice when it is dropped."""


class Mutant(NamedTuple):
    """One bug."""

    file: str
    """From the root of the repository."""
    line: int
    kind: str
    before: str
    after: str
    start: tuple[int, int]
    """Line and column of what is replaced, both as `ast` counts them."""
    end: tuple[int, int]

    @property
    def id(self) -> str:
        """Names it as long as the module stays as it is."""
        return f"{self.file}:{self.line}:{self.start[1]}:{self.kind}"

    def planted(self, source: str) -> str:
        """The module with the bug in it."""
        lines = source.encode().splitlines(keepends=True)
        (first, begin), (last, end) = self.start, self.end
        head, tail = lines[first - 1][:begin], lines[last - 1][end:]
        indented = self.after.replace("\n", "\n" + " " * (len(head) - len(head.lstrip())))
        return b"".join([*lines[: first - 1], head + indented.encode() + tail, *lines[last:]]).decode()


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Every bug that can be planted into a module."""
    found = {
        (each.start, each.end, each.after): each for each in _Reading(file, source).of(ast.parse(source), is_type=False)
    }
    return list(found.values())


def compiles(source: str) -> bool:
    """Whether Python takes it for a module; what cannot be said so is no bug."""
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


class _Reading:
    """Goes through one module."""

    def __init__(self, file: str, source: str) -> None:
        self._file = file
        self._source = source

    def of(self, node: ast.AST, *, is_type: bool) -> Iterator[Mutant]:
        """The bugs of a node and of all below it."""
        if isinstance(node, ast.Assert) or is_type or _is_for_checkers(node):
            return
        if isinstance(node, ast.expr):
            yield from self._of_expression(node)
        elif isinstance(node, ast.stmt):
            yield from self._of_statement(node)
        for name, below in ast.iter_fields(node):
            is_hint = name in {"annotation", "returns", "decorator_list", "type_params"}
            for each in below if isinstance(below, list) else [below]:
                if isinstance(each, ast.AST):
                    yield from self.of(each, is_type=is_hint)

    def _made(self, node: ast.expr | ast.stmt, kind: str, after: ast.AST | str) -> Mutant:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        text = after if isinstance(after, str) else ast.unparse(ast.fix_missing_locations(after))
        if isinstance(node, ast.expr):
            text = f"({text})"
        return Mutant(
            file=self._file,
            line=node.lineno,
            kind=kind,
            before=ast.get_source_segment(self._source, node) or "",
            after=text,
            start=(node.lineno, node.col_offset),
            end=(node.end_lineno, node.end_col_offset),
        )

    # -- expressions

    def _of_expression(self, node: ast.expr) -> Iterator[Mutant]:
        match node:
            case ast.Compare(ops=[operator]):
                swapped = copy.deepcopy(node)
                swapped.ops = [SWAPPED[type(operator)]()]
                yield self._made(node, "swapped comparison", swapped)
            case ast.BoolOp():
                yield from self._of_several(node)
            case ast.Call():
                yield from self._of_call(node)
            case ast.Constant():
                yield from self._of_constant(node)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                other = copy.deepcopy(node)
                other.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
                if not isinstance(node.left, (ast.Constant, ast.JoinedStr, ast.List)) or _is_number(node.left):
                    yield self._made(node, "swapped sign", other)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                yield from self._of_comprehension(node)
            case ast.UnaryOp(op=ast.Not()):
                yield self._made(node, "negated condition", copy.deepcopy(node.operand))
            case ast.IfExp():
                yield self._made(node, "dropped choice", copy.deepcopy(node.body))
                yield self._made(node, "dropped choice", copy.deepcopy(node.orelse))
            case _:
                return

    def _of_several(self, node: ast.BoolOp) -> Iterator[Mutant]:
        other = copy.deepcopy(node)
        other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield self._made(node, "and/or", other)
        for place in range(len(node.values)):
            rest = [copy.deepcopy(each) for number, each in enumerate(node.values) if number != place]
            left = rest[0] if len(rest) == 1 else ast.BoolOp(op=copy.deepcopy(node.op), values=rest)
            yield self._made(node, "dropped condition", left)

    def _of_call(self, node: ast.Call) -> Iterator[Mutant]:
        for place, given in enumerate(node.keywords):
            if given.arg is None or given.arg in _UNSEEN:
                continue
            less = copy.deepcopy(node)
            del less.keywords[place]
            yield self._made(node, "dropped keyword", less)

    def _of_constant(self, node: ast.Constant) -> Iterator[Mutant]:
        value = node.value
        if isinstance(value, bool):
            yield self._made(node, "changed constant", ast.Constant(value=not value))
        elif isinstance(value, (int, float)):
            yield self._made(node, "off by one", ast.Constant(value=value + 1))
            if value:
                yield self._made(node, "off by one", ast.Constant(value=value - 1))

    def _of_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Iterator[Mutant]:
        for place, loop in enumerate(node.generators):
            for number in range(len(loop.ifs)):
                less = copy.deepcopy(node)
                del less.generators[place].ifs[number]
                yield self._made(node, "dropped filter", less)

    # -- statements

    def _of_statement(self, node: ast.stmt) -> Iterator[Mutant]:
        match node:
            case ast.If() | ast.While():
                if not isinstance(node.test, (ast.UnaryOp, ast.Compare)):
                    negated = ast.UnaryOp(op=ast.Not(), operand=copy.deepcopy(node.test))
                    yield self._made(node.test, "negated condition", negated)
                if isinstance(node, ast.If) and not node.orelse and _leaves(node.body):
                    yield self._made(node, "dropped guard", "pass")
            case ast.Expr(value=ast.Call() | ast.Await() as call):
                called = call.value if isinstance(call, ast.Await) else call
                if isinstance(called, ast.Call) and not ast.unparse(called.func).startswith(_SILENT):
                    yield self._made(node, "dropped call", "pass")
            case ast.AugAssign():
                yield self._made(node, "dropped change", "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) if not isinstance(node.value, ast.Name):
                yield self._made(node, "dropped change", "pass")
            case ast.Continue() | ast.Break():
                yield self._made(node, "dropped jump", "pass")
            case _:
                return


def _leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _is_for_checkers(node: ast.AST) -> bool:
    """Whether something is there for people and for type checkers alone."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.UnaryOp(operand=ast.Name(id="TYPE_CHECKING"))):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Raise() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return True
        case ast.Module():
            return False
        case ast.AnnAssign(target=ast.Name(id=name), annotation=hint) if "Final" in ast.unparse(hint):
            return not any(each in name for each in _BOUNDS)
        case ast.Assign(targets=[ast.Name(id=name)]) if name.isupper():
            return not any(each in name for each in _BOUNDS)
        case ast.Call(func=ast.Name(id="cast" | "TypeVar" | "NewType" | "ParamSpec")):
            return True
        case _:
            return False
