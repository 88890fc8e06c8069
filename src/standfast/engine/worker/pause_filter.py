"""Filters claimed work: work covered by a pause is put back before it begins."""

from __future__ import annotations

from collections.abc import Sequence

from standfast.engine.commit.context import EngineContext, ReadableTypes
from standfast.engine.common.pauses import ActivePauses, holds_call, holds_timers
from standfast.store.ports.pauses import OF_INSTANTS, HeldTimer, PausedEffect, PauseRecord, Pauses, holding
from standfast.store.records.instances import StoredEffect, StoredTimer
from standfast.store.sql.pause_propagation import frozen_since


class PauseFilter:
    """Checks claimed work against the pauses. It belongs to the claiming thread."""

    def __init__(self, pauses: Pauses, standing: ActivePauses, shared: EngineContext) -> None:
        self._pauses = pauses
        self._standing = standing
        self._shared = shared

    def open_to(self, effects: list[StoredEffect]) -> list[StoredEffect]:
        """Return the claimed effects that no pause covers. The others are put back as held."""
        if not self._standing.pauses or not effects:
            return effects
        about = self._about(effects)
        held = [
            each for each, pauses in zip(effects, about, strict=True) if pauses and holds_call(pauses, self._step(each))
        ]
        if held:
            self._pauses.hold_back([each.claim for each in held], at=self._shared.clock.now())
        kept_back = {each.claim for each in held}
        return [each for each in effects if each.claim not in kept_back]

    def open_to_timers(self, timers: list[StoredTimer]) -> list[StoredTimer]:
        """Return the claimed timers that no pause covers. The others are put back as held."""
        if not self._standing.pauses or not timers:
            return timers
        about = [holds_timers(each) for each in self._about(timers)]
        held = [
            HeldTimer(each.claim, None if (each.language, each.key) in OF_INSTANTS else frozen_since(pauses))
            for each, pauses in zip(timers, about, strict=True)
            if pauses
        ]
        if held:
            self._pauses.hold_timers(held, at=self._shared.clock.now())
        return [each for each, pauses in zip(timers, about, strict=True) if not pauses]

    def _about(self, work: Sequence[StoredEffect | StoredTimer]) -> list[tuple[PauseRecord, ...]]:
        """Return the pauses that cover the instance of each piece of work.

        Versions are read only if a pause depends on one.
        """
        pauses = self._standing.pauses
        versions = {}
        if any(each.scope.version for each in pauses):
            versions = self._pauses.versions(list({each.instance for each in work}))
        return [holding(pauses, each.tenant, each.definition, versions.get(each.instance, "")) for each in work]

    def _step(self, effect: StoredEffect) -> str:
        if all(not each.scope.step for each in self._standing.pauses):
            return ""
        return step_of(self._shared.languages, effect)


def step_of(languages: ReadableTypes, effect: StoredEffect | PausedEffect) -> str:
    """Return the step of an effect. Empty if it has none or cannot be read here."""
    try:
        program = languages.speaker(effect.language)
        return program.step_of(program.effects.decode(effect.type, effect.version, effect.data))
    except Exception:  # noqa: BLE001 - unreadable work is not claimed here anyway
        return ""
