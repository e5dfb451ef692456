"""What the rules of the doctor need of the catalogue, for one machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog import releases
from tfdyno.core.base import clock
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.software import Knowledge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.base.language import Language
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.software import WheelSupport
    from tfdyno.core.doctor.machine_facts import GpuFacts, MachineFacts


def knowledge_of(facts: MachineFacts) -> Knowledge:
    """Return the release of the machine's TensorFlow and how its wheel runs on each known card.

    Raises:
        ToolError: A shipped table is corrupt.
    """
    release = releases.release_of(tensorflow_of(facts))
    return Knowledge(
        release=release,
        releases=releases.all_releases(),
        candidate=releases.candidate(),
        support=_support(facts.gpus or (), release.tensorflow) if release else (),
        cuda_drivers=releases.cuda_drivers(),
    )


def aged(tensorflow: str, language: Language = "en") -> str:
    """Return why the tables may not hold for a TensorFlow, in a sentence; empty: they do."""
    from tfdyno.words.doctor.languages import behind_words

    return behind_words(releases.behind(tensorflow, clock.today()), tensorflow, language)


def tensorflow_of(facts: MachineFacts) -> str:
    """Return the version of the machine's TensorFlow; empty where it is unknown."""
    return facts.tensorflow or facts.python.installed.get("tensorflow", "")


def capability_of(name: str) -> tuple[str, str]:
    """Return slug and compute capability of a card by any name; empty where none or several."""
    from tfdyno.catalog.gpus import find

    try:
        card = find(name)
    except UsageError:
        return "", ""
    return card.slug, card.compute_capability


def _support(cards: Iterable[GpuFacts], tensorflow: str) -> tuple[WheelSupport, ...]:
    """Say how a wheel runs on each card; an unknown one counts as another of its capability.

    Each bears the card's slug, or its name where it has none.
    """
    by_name = {card.slug or card.name: card for card in cards if card.slug or card.name}
    if not by_name:
        return ()
    from tfdyno.jobs.machine.wheels import (
        supported,  # only here: without a card no catalogue is read
    )

    found = ((name, _like(card)) for name, card in by_name.items())
    return tuple(
        replace(supported(gpu, tensorflow), gpu=name) for name, gpu in found if gpu is not None
    )


def _like(card: GpuFacts) -> Gpu | None:
    """Return the card of the catalogue, else one of the same compute capability with a wheel."""
    from tfdyno.catalog.gpus import all_gpus, find
    from tfdyno.catalog.software import wheel_support

    if card.slug:
        return find(card.slug)
    alike = (gpu for gpu in all_gpus() if gpu.compute_capability == card.compute_capability)
    return next((gpu for gpu in alike if wheel_support(gpu).verdict != "cannot"), None)
