"""The state of one card before and while it is swept, as NVML tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.choose.card_file import Condition
from tfdyno.core.measure.measurement import MISSING
from tfdyno.jobs.machine.knowledge import capability_of
from tfdyno.model.measure.statistics import median
from tfdyno.probe.cards import cards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import Card, CardTelemetry, Telemetry

OFTEN = 0.1
"""Share of the readings from which on a reason counts."""
LOADED = 0.5
"""Share of the time with a kernel from which on a reading is one under load."""


class CardState:
    """What NVML says of a card; all of it unknown where there is no NVML."""

    def __init__(self, index: int) -> None:
        """Look at the card once, before it is swept.

        Args:
            index: Its number among the visible cards.
        """
        self._index = index
        self._link: tuple[int | None, int | None, int | None] = (None, None, None)
        self.card: Card | None = None
        self.reading = cards.Reading()
        self._default_limit_w: float | None = None
        with cards.opened() as nvml:
            found = cards.handles(nvml, None) if nvml else ()
            if index < len(found):
                handle = found[index][1]
                self.card = cards.card(nvml, handle, lambda name: capability_of(name)[0])
                self.reading = cards.reading(nvml, handle)
                limit = cards.ask(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle)
                self._default_limit_w = None if limit is None else limit / cards.WATT_MW
                self.driver = cards.text(cards.ask(nvml, "nvmlSystemGetDriverVersion"))
                self.count = len(found)
            else:
                self.driver, self.count = "", len(found)

    def look_at_link(self) -> None:
        """Read the PCIe link, which an idle card lets sleep: ask while it works."""
        with cards.opened() as nvml:
            found = cards.handles(nvml, None) if nvml else ()
            if self._index < len(found):
                handle = found[self._index][1]
                generation, width, most = (
                    cards.ask(nvml, f"nvmlDeviceGet{name}", handle)
                    for name in ("CurrPcieLinkGeneration", "CurrPcieLinkWidth", "MaxPcieLinkWidth")
                )
                self._link = (generation, width, most)

    def condition(self, told: Telemetry | None, slice_name: str) -> Condition:
        """Return the state with what was seen under load."""
        busy = other_cpu_ratio(told)
        if self.card is None:
            return Condition(other_cpu_ratio=busy)
        seen = told.cards[self._index] if told and self._index < len(told.cards) else None
        generation, width, most = self._link
        return Condition(
            memory_bytes=self.card.memory_bytes or None,
            clock_hz=_median(seen.graphics_clock_hz if seen else ()),
            clock_limit_hz=self.card.graphics_clock_limit_hz or None,
            power_w=_median(seen.power_w if seen else ()),
            power_limit_w=self.card.power_limit_w or None,
            default_power_limit_w=self._default_limit_w,
            throttle=_throttle(seen),
            pcie_generation=generation,
            pcie_width=width,
            pcie_width_limit=most,
            ecc=self.card.ecc,
            uncorrected_errors=self.reading.uncorrected_errors,
            slice_name=slice_name,
            other_processes=None if self.reading.processes is None else len(self.reading.processes),
            other_cpu_ratio=busy,
        )


def _median(values: Sequence[float]) -> float | None:
    known = [value for value in values if value != MISSING]
    return median(known) if known else None


def other_cpu_ratio(told: Telemetry | None) -> float | None:
    """Return the median share of all processors that other processes used; None: not known."""
    return _median(told.other_cpu_ratio) if told else None


def _throttle(seen: CardTelemetry | None) -> tuple[str, ...]:
    """Return reasons in a tenth of the readings, most often first; an idle card is not held."""
    readings = seen.throttle if seen else ()
    counts: dict[str, int] = {}
    for reading in readings:
        for reason in reading:
            counts[reason] = counts.get(reason, 0) + 1
    often = [reason for reason, count in counts.items() if count >= OFTEN * len(readings)]
    return tuple(sorted(often, key=lambda reason: -counts[reason]))
