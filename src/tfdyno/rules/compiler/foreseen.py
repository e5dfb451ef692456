"""Which known faults of XLA a model will meet, by release, card and what its step holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.choose.generation import NAMES, Framework, release_of
from tfdyno.rules.compiler.faults import Fault, all_faults

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tfdyno.core.choose.program import Program

PATTERNS = {
    "convolution_flatten_dense": "a model with convolutions, Flatten and Dense",
    "convolution": "a model with convolutions",
    "product": "a model with matrix products",
    "any": "some models",
}
LEAST_PLACES = 4
"""The fewest places of a picture that Flatten leaves: fewer is a pooled one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilePlace:
    """Where XLA will compile."""

    framework: Framework
    version: str
    """Release, as many parts as are known."""
    compute_capability: str
    cudnn: str = ""
    """Empty: not known, and nothing is said that hangs on it."""


def faults_at(place: CompilePlace, patterns: Collection[str] | None = None) -> tuple[Fault, ...]:
    """Return the known faults of this release on this card, for such a model.

    Args:
        place: Where it will be compiled.
        patterns: Of the model; None: not known, so that all are told.
    """
    return tuple(
        one for one in all_faults()
        if one.pattern and _is_met(one, place)
        and (patterns is None or one.pattern == "any" or one.pattern in patterns)
    )  # fmt: skip


def warning_of(fault: Fault, place: CompilePlace, *, about: bool = False) -> str:
    """Return what is said beforehand, in one sentence.

    Args:
        fault: That is met there.
        place: Where.
        about: Whether to say which models have it, where none is asked about.
    """
    model = f" for {PATTERNS[fault.pattern]}" if about else ""
    where = f"{NAMES[place.framework]} {place.version} on compute capability"
    threads = ", ".join(fault.references)
    if fault.stops:
        return (
            f"XLA, the default of fit in Keras 3, fails with the wheel of {where} "
            f"{place.compute_capability}: {fault.title} ({threads}). What works: {fault.remedy}."
        )
    remedy = fault.remedy
    if fault.check:
        remedy = f"XLA_FLAGS={fault.check} tells whether a model has it; {remedy}"
    return (
        f"Known fault of XLA in {where} {place.compute_capability}{model}: {fault.title} "
        f"({threads}); {remedy}."
    )


def patterns_of(program: Program) -> frozenset[str]:
    """Return what of a step decides whether it meets a fault, by the kernels of its forward pass.

    A product flattens a picture where its rows are the samples and each row holds the channels of
    the convolution before it, at several places.
    """
    found = set(_flattened(program))
    kinds = {one.kind for one in program.kernels}
    found |= {"convolution"} if "convolution" in kinds else set()
    found |= {"product"} if "gemm" in kinds else set()
    return frozenset(found)


def _flattened(program: Program) -> Iterator[str]:
    channels = 0
    for one in program.kernels:
        if one.direction not in ("", "forward") or one.phase != "forward":
            continue
        if one.kind == "convolution":
            channels = one.dims.get("cout", (0,))[0]
        elif one.kind == "gemm" and channels:
            sizes = {name: one.dims.get(name, (0,))[0] for name in ("m", "n", "k", "batch")}
            rows = program.batch_size in (sizes["m"], sizes["n"]) and sizes["batch"] <= 1
            places, rest = divmod(sizes["k"], channels)
            if rows and not rest and places >= LEAST_PLACES:
                yield "convolution_flatten_dense"


def _is_met(fault: Fault, place: CompilePlace) -> bool:
    releases = fault.tensorflow if place.framework == "tensorflow" else fault.jaxlib
    if fault.capabilities and place.compute_capability not in fault.capabilities:
        return False
    if fault.cudnn and not _is_between(place.cudnn, *fault.cudnn):
        return False
    return any(_is_of(place.version, release) for release in releases)


def _is_of(version: str, release: str) -> bool:
    """Return whether ``2.21.0`` is one of ``2.21``."""
    parts = release_of(release)
    try:
        return release_of(version)[: len(parts)] == parts
    except ValueError:
        return False


def _is_between(version: str, first: str, last: str) -> bool:
    try:
        found = release_of(version)[:2]
    except ValueError:
        return False
    return release_of(first) <= found <= release_of(last)
