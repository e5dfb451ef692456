"""Where estimates find the sweeps of cards, and the words in which they say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.catalog import gpus as catalog
from tfdyno.catalog.offers import data_dir
from tfdyno.catalog.sweeps import reference_sweep
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.process_limits import allowed
from tfdyno.core.choose.card_file import CPU, CardFile
from tfdyno.core.choose.hardware import CPU_VENDOR, Gpu, SmRates
from tfdyno.probe.base import processors
from tfdyno.probe.base.host import this_host
from tfdyno.probe.machine import system
from tfdyno.store.card_files import CardFiles

if TYPE_CHECKING:
    from tfdyno.core.choose.generation import Software
    from tfdyno.core.choose.time_model import TimeModel
    from tfdyno.model.time.calibrate.constants import Reference

SWEEP = "tfdyno calibrate"
UNIT_HZ = 1e9
"""A clock for which the peak of processors is made up: only the product of the two is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeps:
    """The card files that estimates may use."""

    cards: tuple[CardFile, ...] = ()
    problems: tuple[str, ...] = ()
    """A sentence for every one that is left out."""

    def of(self, gpu: Gpu, software: Software) -> CardFile | None:
        """Return the sweep of a card: by the same framework if there is one, the newest."""
        found = [one for one in self.cards if one.card == gpu.slug]
        same = [one for one in found if one.framework == software.framework]
        return max(same or found, key=lambda one: one.made_on, default=None)

    def model_for(self, model: TimeModel, gpu: Gpu, software: Software) -> TimeModel:
        """Return the time model as it serves a card: with its sweep, where there is one."""
        from tfdyno.model.time.calibrate.steps import with_sweep

        card = self.of(gpu, software)
        if card is None:
            return model
        same = (card.framework, card.generation) == (software.framework, software.generation)
        return with_sweep(model, gpu, card, same_software=same, reference=reference())


def reference() -> Reference:
    """Return what the law of steps is off kernels that run alone."""
    from tfdyno.model.time.calibrate.constants import Reference

    card = reference_sweep()
    return Reference(card=card, gpu=catalog.find(card.card))


def stored_sweeps() -> Sweeps:
    """Read the sweeps in the user's data folder; those of other processors are told as left out."""
    found, problems = CardFiles(folder=data_dir()).read()
    kept = tuple(one for one in found if not _foreign(one))
    told = (
        f"The sweep of {one.name} ({one.processors} processors) is left out: this machine has "
        f"{_cpu_name()} ({len(allowed())}); run {SWEEP} here."
        for one in found
        if _foreign(one)
    )
    return Sweeps(cards=kept, problems=(*problems, *told))


def _foreign(card: CardFile) -> bool:
    here = (_cpu_name(), len(allowed()))
    return card.card == CPU and (card.name, card.processors) != here


def _cpu_name() -> str:
    return processors.name(this_host()) or "CPU"


def cards_named(text: str) -> tuple[Gpu, ...]:
    """Return the cards of a list of names, where ``cpu`` is the processors of this machine.

    Raises:
        UsageError: A name is not one card, or the processors were not swept.
    """
    names = [part.strip() for part in text.split(",")]
    if CPU not in (name.lower() for name in names):
        return catalog.parse_list(text)
    rest = ",".join(name for name in names if name.lower() != CPU)
    return (*(catalog.parse_list(rest) if rest else ()), processors_as_card())


def processors_as_card() -> Gpu:
    """Return the processors of this machine in the shape of a card, by their sweep.

    Raises:
        UsageError: There is none by TensorFlow.
    """
    sweeps = stored_sweeps()
    swept = [one for one in sweeps.cards if one.card == CPU and one.framework == "tensorflow"]
    if not swept:
        raise UsageError(
            "nothing is known of these processors",
            why=sweeps.problems[0].rstrip(".") if sweeps.problems else "no sweep of them is there",
            remedy=f"run '{SWEEP} --card cpu' once, about a minute",
        )
    return _as_card(max(swept, key=lambda one: one.made_on))


def _as_card(card: CardFile) -> Gpu:
    from tfdyno.model.time.calibrate.cpu_law import rough_law

    law, count = rough_law(card), max(1, card.processors)
    memory_bytes = system.memory_bytes(this_host())
    source = f"{SWEEP}, {card.made_on}"
    none = dict.fromkeys(
        (name for name in SmRates.__slots__ if name.endswith("_per_clock")), 0.0
    ) | dict.fromkeys(
        ("cuda_cores", "tensor_cores", "max_threads", "max_blocks", "shared_memory_bytes",
         "shared_memory_per_block_bytes", "registers"), 0,
    )  # fmt: skip
    peak = law.flops_per_s / count / UNIT_HZ
    rates = SmRates(**{**none, "compute_capability": "0.0", "variant": CPU, "source": source,
                       "fp32_per_clock": peak})  # type: ignore[arg-type]  # fmt: skip
    return Gpu(
        slug=CPU, name=card.name, vendor=CPU_VENDOR, market="workstation", architecture=CPU,
        compute_capability="0.0", rates=rates, sm_count=count, boost_hz=UNIT_HZ,
        tensor_clock_hz=UNIT_HZ, memory_bytes=memory_bytes, usable_memory_bytes=memory_bytes,
        usable_memory_source="what the system tells", memory_type="RAM",
        memory_bytes_per_s=law.bytes_per_s, l2_bytes=0.0, ecc=False, tdp_w=0.0,
        pcie_generation="", nvlink_bytes_per_s=0.0, mig_max_instances=0, first_cuda="",
        release_year=0, launch_price_usd=0.0, form_factor="", cooling="", power_connector="",
        recommended_power_supply_w=0.0, continuous_duty="unknown", source=source,
    )  # fmt: skip


def sweep_notes(sweeps: Sweeps, used: tuple[str, ...]) -> tuple[str, ...]:
    """Return a sentence on the sweeps that estimates rest on, and one for each that is left out."""
    told = tuple(f"Times use {words}." for words in dict.fromkeys(filter(None, used)))
    return (*told, *sweeps.problems)
