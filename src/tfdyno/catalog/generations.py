"""Which generation of software a release belongs to (``catalog/data/kernel_model.toml``)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tfdyno.catalog.software import NEWEST
from tfdyno.catalog.time_model import kernel_tables
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.generation import NAMES, Generation, Software, release_of

if TYPE_CHECKING:
    from typing import Literal

    from tfdyno.core.choose.generation import Framework
    from tfdyno.core.choose.program import Lowering


@lru_cache(maxsize=1)
def generations() -> tuple[Generation, ...]:
    """Return all of them, oldest first."""
    found = [
        Generation(
            name=name,
            tensorflow=table["tensorflow"],
            jax=table["jax"],
            tensorflow_measured=(table["measured"][0], table["measured"][1]),
            summary=table["summary"],
            kernel_executions=tuple(table["kernel_executions"]),
            source=table["source"],
        )
        for name, table in kernel_tables()["generations"].items()
    ]
    return tuple(sorted(found, key=lambda one: release_of(one.tensorflow)))


def software_from(asked: str) -> Software | None:
    """Read ``tensorflow 2.15``, ``2.15``, ``jax``, ``jax 0.10`` as software; None for nothing.

    Raises:
        UsageError: It is no release of either.
    """
    words = asked.lower().split()
    if not words:
        return None
    framework: Framework = "jax" if words[0] == "jax" else "tensorflow"
    rest = words[1:] if words[0] in NAMES else words
    version = rest[0] if rest else ""
    if len(rest) > 1:
        raise _unknown(asked)
    return software(framework, version, "asked") if version or framework == "jax" else newest()


def software(
    framework: Framework, version: str, chosen: Literal["asked", "installed", "newest"]
) -> Software:
    """Return the generation that a release belongs to, and a note where nothing measured is of it.

    Args:
        framework: ``tensorflow`` or ``jax``.
        version: As the package gives it; empty: the newest of JAX.
        chosen: Why this release.

    Raises:
        UsageError: The version is not one.
    """
    known = generations()
    if framework == "jax" and not version:
        return Software(framework="jax", version="", generation=known[-1].name, chosen=chosen)
    try:
        release = release_of(version)
    except ValueError:
        raise _unknown(version) from None
    of = [
        one
        for one in known
        if release_of(one.jax if framework == "jax" else one.tensorflow) <= release
    ]
    found = of[-1] if of else known[0]
    return Software(
        framework=framework,
        version=version,
        generation=found.name,
        chosen=chosen,
        note=_note(framework, version, release, found, older=not of),
    )


def newest() -> Software:
    """Return the newest release of TensorFlow that the catalogue knows."""
    return software("tensorflow", NEWEST, "newest")


def lowering_of(one: Software) -> Lowering:
    """Return how steps become operations under the release."""
    return "before" if one.generation == generations()[0].name else one.framework


def _note(
    framework: Framework, version: str, release: tuple[int, ...], found: Generation, *, older: bool
) -> str:
    name = f"{NAMES[framework]} {version}"
    if older:
        return f"No measured step is of {name}: answered as for {NAMES[framework]} " + (
            f"{found.jax if framework == 'jax' else found.tensorflow}, the oldest known."
        )
    if framework == "jax":
        return ""
    first, last = found.tensorflow_measured
    if first and release_of(first)[:2] <= release[:2] <= release_of(last)[:2]:
        return ""
    return (
        f"No measured step is of {name}: answered by the nearest generation, "
        f"TensorFlow {first} to {last}."
    )


def _unknown(asked: str) -> UsageError:
    return UsageError(
        f"'{asked}' is no release of TensorFlow or JAX",
        remedy=f"give it like {NEWEST}, or leave it out for the one that is installed",
    )
