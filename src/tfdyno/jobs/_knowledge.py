"""What the rules of the doctor need of the catalogue, for one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.catalog import releases
from tfdyno.core.errors import UsageError
from tfdyno.core.software import Knowledge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.machine_facts import MachineFacts
    from tfdyno.core.software import WheelSupport


def knowledge_of(facts: MachineFacts) -> Knowledge:
    """The release of the machine's TensorFlow and how its wheel runs on each known card.

    Raises:
        ToolError: A shipped table is corrupt.
    """
    tensorflow = facts.tensorflow or facts.python.installed.get("tensorflow", "")
    release = releases.release_of(tensorflow)
    slugs = dict.fromkeys(card.slug for card in facts.gpus or () if card.slug)
    return Knowledge(
        release=release,
        releases=releases.all_releases(),
        support=_support(slugs, release.tensorflow) if release and slugs else (),
        cuda_drivers=releases.cuda_drivers(),
    )


def capability_of(name: str) -> tuple[str, str]:
    """Slug and compute capability of a card by any of its names; empty where none or several."""
    from tfdyno.catalog.gpus import find

    try:
        card = find(name)
    except UsageError:
        return "", ""
    return card.slug, card.compute_capability


def _support(slugs: Iterable[str], tensorflow: str) -> tuple[WheelSupport, ...]:
    from tfdyno.catalog.gpus import find  # only here: without a card the catalogue is not read
    from tfdyno.catalog.software import wheel_support

    return tuple(wheel_support(find(slug), tensorflow) for slug in slugs)
