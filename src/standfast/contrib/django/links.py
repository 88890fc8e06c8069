"""Links from the admin to runs."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import quote

from django.conf import settings
from django.utils.html import format_html

from standfast.contrib.django.engines import RUN_URL


def run_link(run: object) -> str:
    """Return a link to a run, by `run_url` in settings.STANDFAST, such as `https://ops.example.org/runs/{run}`; without it, the id."""
    if not run:
        return "-"
    pattern = getattr(settings, "STANDFAST", {}).get(RUN_URL, "")
    if not pattern:
        return str(run)
    return str(format_html('<a href="{}">{}</a>', pattern.replace("{run}", quote(str(run), safe="")), run))


class RunLinks:
    """For a `ModelAdmin`: a column `standfast_run`, with the run whose id the field `run_field` of each row holds."""

    run_field: ClassVar[str] = "run"

    def standfast_run(self, row: object) -> str:
        """Return the link to the row's run."""
        return run_link(getattr(row, self.run_field))

    standfast_run.short_description = "run"  # type: ignore[attr-defined]  # By which the admin heads the column.
