"""What an organisation says about its documents besides their workflows: its settings, and the rules that every change is judged by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from holdfast.machine.graphs.graph import DocumentRule

Rules = Callable[[str, str, str], Sequence[DocumentRule]]
"""The rules of a tenant for a type of documents and an action or transition."""
Organisation = Callable[[str], Mapping[str, object]]
"""The settings of a tenant, which expressions read as `org`."""


class Charters:
    """Asks whoever knows; nobody knows anything until somebody says so."""

    def __init__(self) -> None:
        self.rules: Rules | None = None
        self.organisation: Organisation | None = None

    def tell(self, rules: Rules | None, organisation: Organisation | None) -> None:
        """Somebody knows; None leaves what was said before."""
        self.rules, self.organisation = rules or self.rules, organisation or self.organisation

    def rules_for(self, tenant: str, type_: str, action: str) -> list[DocumentRule]:
        """The rules that a change is judged by."""
        return [] if self.rules is None else list(self.rules(tenant, type_, action))

    def org_of(self, tenant: str) -> dict[str, object]:
        """The settings of a tenant."""
        return {} if self.organisation is None else dict(self.organisation(tenant))
