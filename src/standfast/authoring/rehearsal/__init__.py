"""Runs that are played without a database: the stage, what is supposed of the world on it, and which way a run would take."""

from __future__ import annotations

from standfast.authoring.rehearsal.dry_run import DryRun, DryRunPath, Ending, SimulationTerms, dry_run
from standfast.authoring.rehearsal.passages import EndlessError, TraceEntry
from standfast.authoring.rehearsal.script import Assumptions
from standfast.authoring.rehearsal.stage import MOST_COMMANDS, Simulator

__all__ = [
    "MOST_COMMANDS",
    "Assumptions",
    "DryRun",
    "DryRunPath",
    "Ending",
    "EndlessError",
    "SimulationTerms",
    "Simulator",
    "TraceEntry",
    "dry_run",
]
