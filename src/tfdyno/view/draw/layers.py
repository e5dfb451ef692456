"""Layers in groups: hundreds of layers become the ten or so blocks a person knows by name."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.words.base.language import say, say_later

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tfdyno.core.choose.estimate import LayerTime

OTHER = say_later("other layers")
UNNAMED = say_later("not in any layer")
_NUMBERED = re.compile(r"(.*?)(\d+)[a-z]?")
_SPARE_RATIO = 0.1
_SMALL_RATIO = 0.004
_SEPARATORS = re.compile(r"[_/.\-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Seconds, FLOPs and bytes of a step in layers of one block."""

    name: str
    layers: int
    step_s: float
    by_phase_s: dict[str, float]
    by_class_s: dict[str, float]
    flops: float
    traffic_bytes: float


def group_layers(
    layers: Sequence[LayerTime], *, most: int = 12, order: Sequence[str] = ()
) -> tuple[LayerGroup, ...]:
    """Return at most ``most`` groups, then one for the rest; ``order`` lists layers as they run.

    Layers are grouped by the longest common beginning of their names (``conv2_block1_1_conv`` →
    ``conv2_block1`` → ``conv2``) that gives few enough groups.
    """
    keys = _keys(layers, most)
    members: dict[str, list[LayerTime]] = defaultdict(list)
    for layer, key in zip(layers, keys, strict=True):
        members[key].append(layer)
    largest = sorted(members, key=lambda key: -sum(layer.step_s for layer in members[key]))
    kept = set(largest if len(largest) <= most else largest[: most - 1])
    total_s = sum(layer.step_s for layer in layers)
    small = {k for k in kept if sum(one.step_s for one in members[k]) < _SMALL_RATIO * total_s}
    kept -= small if len(small) > 1 or len(kept) < len(members) else set()
    place = {name: index for index, name in enumerate(order)}

    def first(key: str) -> int:
        ahead = [one.layer for one in members[key] if one.by_phase_s.get("forward", 0.0) > 0]
        return min((place.get(name, len(order)) for name in ahead), default=len(order))

    groups = [_sum(key, members[key]) for key in sorted(members, key=first) if key in kept]
    rest = [layer for key in members if key not in kept for layer in members[key]]
    return tuple(groups + ([_sum(say(OTHER), rest)] if rest else []))


def _sum(name: str, layers: Iterable[LayerTime]) -> LayerGroup:
    members = list(layers)
    phases: dict[str, float] = defaultdict(float)
    classes: dict[str, float] = defaultdict(float)
    for layer in members:
        for phase, seconds in layer.by_phase_s.items():
            phases[phase] += seconds
        for kind, seconds in layer.by_class_s.items():
            classes[kind] += seconds
    if len(members) == 1:
        name = members[0].layer
    return LayerGroup(
        name=name or say(UNNAMED),
        layers=len(members),
        step_s=sum(layer.step_s for layer in members),
        by_phase_s=dict(phases),
        by_class_s=dict(classes),
        flops=sum(layer.flops for layer in members),
        traffic_bytes=sum(layer.traffic_bytes for layer in members),
    )


def block_names(layers: Sequence[LayerTime], *, most: int = 12) -> dict[str, str]:
    """Return the group of each layer; a layer that is alone in its group keeps its own name."""
    keys = _keys(layers, most)
    sizes = Counter(keys)
    pairs = zip(layers, keys, strict=True)
    return {one.layer: key if sizes[key] > 1 else one.layer for one, key in pairs}


def _keys(layers: Sequence[LayerTime], most: int) -> list[str]:
    weights = [layer.step_s for layer in layers]
    return common_names([layer.layer for layer in layers], most, weights)


def common_names(names: Sequence[str], most: int, weights: Sequence[float] = ()) -> list[str]:
    """Give each layer as many leading parts of its name as keep the groups few.

    Few means ``most``, or that the others weigh no more than a tenth together. Where that puts
    most layers into one group, numbered blocks are joined in ranges instead: ``block_1–4``.
    """
    finer: list[str] = list(names)
    for keys in _levels(names):
        if _few(keys, most, weights):
            sizes = range(2, len(names)) if _lopsided(keys) else ()
            ranges = (_ranges(finer, size) for size in sizes)
            return next((one for one in ranges if _few(one, most, weights)), keys)
        finer = keys
    return finer


def _levels(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield keys from finest to coarsest: leading parts, then without letters, then numbers."""
    parts = [_parts(name) for name in names]
    for depth in range(max([1, *map(len, parts)]), 0, -1):
        keys = [_joined(name, part, depth) for name, part in zip(names, parts, strict=True)]
        yield keys
    yield [re.sub(r"(\d)[a-z]$", r"\1", key) for key in keys]
    yield [key.rstrip("0123456789") or key for key in keys]


def _few(keys: list[str], most: int, weights: Sequence[float]) -> bool:
    """Return whether ``most`` groups are all, or all that counts."""
    totals: dict[str, float] = defaultdict(float)
    for key, weight in zip(keys, weights or [1.0] * len(keys), strict=True):
        totals[key] += weight
    others = sorted(totals.values())[: 1 - most] if len(totals) > most else []
    return sum(others) <= _SPARE_RATIO * sum(totals.values())


def _lopsided(keys: list[str]) -> bool:
    """Return whether one group holds more than half of the layers."""
    return bool(keys) and max(Counter(keys).values()) > len(keys) / 2


def _ranges(keys: list[str], size: int) -> list[str]:
    """Join numbered keys in ranges of ``size``: ``block_1``, ``block_2`` → ``block_1–2``."""
    numbers: dict[str, set[int]] = defaultdict(set)
    split = {key: _NUMBERED.fullmatch(key) for key in set(keys)}
    for match in split.values():
        if match:
            numbers[match.group(1)].add(int(match.group(2)))

    def name(key: str) -> str:
        match = split[key]
        if not match:
            return key
        ordered = sorted(numbers[match.group(1)])
        start = ordered.index(int(match.group(2))) // size * size
        bunch = ordered[start : start + size]
        return f"{match.group(1)}{bunch[0]}" + (f"–{bunch[-1]}" if len(bunch) > 1 else "")

    return [name(key) for key in keys]


def _parts(name: str) -> list[str]:
    """Split a path at its folders; the last one is split where words meet."""
    return [part for part in _SEPARATORS.split(name) if part]


def _joined(name: str, parts: list[str], depth: int) -> str:
    """Join the first ``depth`` parts with the separators they have in ``name``."""
    if len(parts) <= depth:
        return name
    position = 0
    for part in parts[:depth]:
        position = name.index(part, position) + len(part)
    return name[:position]
