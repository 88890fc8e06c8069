"""From a file of processes to definitions: all of them, or everything that is wrong with the file."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from standfast.errors import ConfigurationError, DefinitionError, Diagnostic, indefinite
from standfast.features.process_files.checks import Checks
from standfast.features.process_files.compiler import graph_of
from standfast.features.process_files.expressions import ExpressionBudget
from standfast.features.process_files.format import Domain
from standfast.features.process_files.outline import Asking, Outline
from standfast.features.process_files.warnings import warnings_of
from standfast.graph.definition import Definition
from standfast.graph.source_files.parsing import parse, shown
from standfast.graph.source_files.reading import EnoughError, Findings, StructReader
from standfast.graph.source_files.tree import Fields, FileItems, Mark, Tree, plain
from standfast.graph.values.forms import form_faults

_YAML: Final = "application/yaml"
_JSON: Final = "application/json"


def load_processes(text: str | bytes, *, name: str = "the file") -> list[Definition]:
    """The definitions of a file of processes, in YAML or JSON; DefinitionError with every finding, each with its line and column.

    `name` is what messages call the file. Definitions are registered like any other: `engine.register(definition)`.
    """
    given: object = text  # What a caller without types gave.
    if not isinstance(given, str | bytes):
        raise ConfigurationError(f"processes are given as YAML or JSON, not as {indefinite(type(given))}")
    found: list[Diagnostic] = []
    findings = Findings(found)
    loaded: list[Definition] = []
    with suppress(EnoughError):
        loaded = _File(text, findings).definitions()
    if found:
        raise DefinitionError(name, sorted(found, key=_order))
    return loaded


def _order(finding: Diagnostic) -> tuple[int, int]:
    line, column = finding.position.split(":")
    return int(line), int(column)


class _File:
    """One file on its way to definitions."""

    def __init__(self, text: str | bytes, findings: Findings) -> None:
        self._text = text
        self._findings = findings
        self._reader = StructReader(findings)

    def definitions(self) -> list[Definition]:
        tree = parse(self._text, self._findings.found)
        domain = None if tree is None else self._reader.read(Domain, tree)
        if tree is None or domain is None:
            return []
        outlines = [Outline(workflow) for workflow in domain.workflows]
        self._check_ids(domain)
        allowance = ExpressionBudget()
        loaded: list[Definition | None] = []
        for place, outline in enumerate(outlines):
            before = len(self._findings.found)
            checks = Checks(outline, self._reader, self._findings, allowance)
            checks.run()
            if (
                checks.is_whole and len(self._findings.found) == before
            ):  # What the graph finds is said with all the rest.
                loaded.append(self._definition(tree, place, outline))
        return [] if self._findings.found else [each for each in loaded if each is not None]

    def _check_ids(self, domain: Domain) -> None:
        seen: set[tuple[str, str]] = set()
        for workflow in domain.workflows:
            key = (workflow.id, str(workflow.version))
            if key in seen:
                message = (
                    f"version {workflow.version} of {shown(workflow.id)} is there twice; give it another id or version"
                )
                self._findings.add("duplicate_workflow", message, self._reader.at(workflow, "id"))
            seen.add(key)

    def _definition(self, tree: Tree, place: int, outline: Outline) -> Definition | None:
        """The definition of a workflow; None if the graph's own checks find something."""
        workflow = outline.workflow
        try:
            graph = graph_of(outline)
        except DefinitionError as error:
            for each in error.diagnostics:
                self._findings.add(each.code, each.message, self._place(outline, each))
            return None
        source, media_type = self._source(tree, place)
        return Definition(
            graph=graph,
            source=source,
            media_type=media_type,
            description=workflow.description or workflow.title,
            words={"title": workflow.title, "description": workflow.description},
            warnings=warnings_of(outline, self._reader),
        )

    def _place(self, outline: Outline, finding: Diagnostic) -> Mark:
        """Where a finding of the graph stands in the file: at the step, or the field of it that the finding is about."""
        step = outline.steps.get(finding.position) or outline.steps.get(finding.position.split("/")[0])
        if isinstance(step, Asking) and step.form is not None:
            paths = {each.message: each.path for each in form_faults(finding.position, step.form)}
            if finding.message in paths:
                return self._reader.within(step, "form", paths[finding.message])
        part = outline.workflow if step is None else step
        return self._reader.at(part, finding.code)

    def _source(self, tree: Tree, place: int) -> tuple[bytes, str]:
        """What is kept with a definition: the file, or if it holds others too, the same with this workflow alone."""
        assert isinstance(tree, Fields)
        workflows = tree.fields["workflows"].tree
        assert isinstance(workflows, FileItems)
        if len(workflows.items) > 1:
            around = {name: plain(field.tree) for name, field in tree.fields.items() if name != "workflows"}
            return msgspec.json.encode({**around, "workflows": [plain(workflows.items[place])]}), _JSON
        text = self._text.encode() if isinstance(self._text, str) else self._text
        return text, _JSON if text.lstrip().startswith(b"{") else _YAML
