"""Runs that are played without a database: the stage, what is supposed of the world on it, and which way a run would take."""

from __future__ import annotations

from standfast.features.simulation.assumptions import Assumptions
from standfast.features.simulation.dry_run import DryRun, DryRunPath, Ending, SimulationTerms, dry_run
from standfast.features.simulation.simulator import MOST_COMMANDS, Simulator
from standfast.features.simulation.trace import EndlessError, TraceEntry

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
