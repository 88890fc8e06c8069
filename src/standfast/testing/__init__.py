"""The public test kit: the real engine with a clock of the test's own, words for testing deciders, and crashes on demand."""

from standfast.testing.crashing import CrashReport, Scenario, crash_everywhere
from standfast.testing.manual import ManualEngine
from standfast.testing.specification import Given, Stored, Then, given

__all__ = ["CrashReport", "Given", "ManualEngine", "Scenario", "Stored", "Then", "crash_everywhere", "given"]
