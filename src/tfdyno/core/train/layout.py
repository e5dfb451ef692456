"""Which weights are split over which devices: rules, what they make of a model, and its bytes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.train.device_mesh import Axes, DeviceMesh, check_axes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

FILE_NAME = "layout.toml"
"""The file of the rules in the folder of a run."""
WHOLE = "-"
"""A dimension that is not split, where axes are written in one word."""
_HEAD = """\
# Which weights are split over which devices. Each rule: a regular expression that the whole path
# of a weight has to match, and for each dimension the axis of the mesh that splits it; "" leaves
# it whole. A weight that no rule matches is whole on every device.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How the weights whose path matches are split."""

    pattern: str
    axes: Axes

    def __post_init__(self) -> None:
        """Refuse a pattern that is none; raises ``UsageError``."""
        try:
            re.compile(self.pattern)
        except re.error as error:
            what = f"the rule '{self.pattern}' of the layout is no regular expression"
            raise UsageError(what, why=str(error)) from None

    def matches(self, path: str) -> bool:
        """Return whether it is about the weight of this path."""
        return re.fullmatch(self.pattern, path) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A weight of a model, and how it is split."""

    path: str
    shape: tuple[int, ...]
    width_bytes: int
    """The bytes of one element."""
    axes: Axes = ()
    """One for each dimension; all empty: it is whole on every device."""
    rule: str = ""
    """The pattern that says so; empty: none matches."""

    @property
    def bytes(self) -> int:
        """The bytes of the whole weight."""
        return math.prod(self.shape) * self.width_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All weights of a model on a mesh."""

    mesh: DeviceMesh
    weights: tuple[Placed, ...] = ()
    is_proposed: bool = False
    """Whether the rules are tfdyno's own proposal."""
    idle_rules: tuple[str, ...] = ()
    """Patterns that no weight matches."""
    slot_bytes: int = 0
    """The bytes of the optimizer's variables on each device."""
    whole_slot_bytes: int = 0
    """The bytes of the optimizer's variables, unsplit."""


def shard_shape(shape: tuple[int, ...], axes: Axes, mesh: DeviceMesh) -> tuple[int, ...]:
    """Return one device's part of a weight: ``(64, 4, 16)`` with model=2 on heads: ``(64, 2, 16)``.

    Args:
        shape: Of the whole.
        axes: One for each dimension, or none.
        mesh: The devices.
    """
    parts = axes or ("",) * len(shape)
    sizes = (mesh.size(name) if name else 1 for name in parts)
    return tuple(length // size for length, size in zip(shape, sizes, strict=True))


def bytes_per_device(weight: Placed, mesh: DeviceMesh) -> int:
    """Return bytes of a weight on each device."""
    return math.prod(shard_shape(weight.shape, weight.axes, mesh)) * weight.width_bytes


def is_split(weight: Placed, mesh: DeviceMesh) -> bool:
    """Return whether a device has less than the whole of it."""
    return bytes_per_device(weight, mesh) < weight.bytes


def is_kernel(weight: Placed) -> bool:
    """Return whether it is a matrix or more: what is worth splitting."""
    return len(weight.shape) > 1 and weight.bytes > 0


def unmatched(layout: Layout) -> tuple[Placed, ...]:
    """Return kernels that no rule is about, the largest first: each device has all of them."""
    found = [one for one in layout.weights if is_kernel(one) and not one.rule]
    return tuple(sorted(found, key=lambda one: (-one.bytes, one.path)))


def device_bytes(layout: Layout) -> int:
    """Return bytes of all weights on each device."""
    return sum(bytes_per_device(one, layout.mesh) for one in layout.weights)


def whole_bytes(layout: Layout) -> int:
    """Return bytes of all weights, unsplit: what each device has without a layout."""
    return sum(one.bytes for one in layout.weights)


def rule_for(path: str, rules: Sequence[Rule]) -> Rule | None:
    """Return the one rule about a weight; None: there is none.

    Raises:
        UsageError: Two rules match, and nothing says which holds.
    """
    found = [rule for rule in rules if rule.matches(path)]
    if len(found) > 1:
        raise UsageError(
            f"two rules of the layout match {path}",
            why=f"'{found[0].pattern}' and '{found[1].pattern}'",
            remedy="make one of them narrower: each weight may match one rule",
        )
    return found[0] if found else None


def checked_axes(path: str, shape: tuple[int, ...], rule: Rule, mesh: DeviceMesh) -> Axes:
    """Return the axes of a rule for a weight.

    Args:
        path: Of the weight.
        shape: Of the weight.
        rule: That matches it.
        mesh: The devices.

    Raises:
        UsageError: It has another number of dimensions, or one cannot be split so.
    """
    if len(rule.axes) != len(shape):
        count = len(rule.axes)
        raise UsageError(
            f"the rule '{rule.pattern}' names {count} dimension{'s' * (count != 1)}, "
            f"and {path} has {len(shape)}: {_words(shape)}",
            remedy='give one axis for each dimension, "" for one that stays whole',
        )
    for length, name in zip(shape, rule.axes, strict=True):
        if name and length % mesh.size(name):
            raise UsageError(
                f"the rule '{rule.pattern}' cannot split {path} {_words(shape)}",
                why=f"{length} is not divisible by {name}={mesh.size(name)}",
                remedy="split another dimension, or change the mesh",
            )
    return rule.axes


def rules_from(raw: dict[str, Any], where: str) -> tuple[Rule, ...]:
    """Return the rules of a TOML file: ``[rules]`` with a pattern and its axes on each line.

    Args:
        raw: What the file says.
        where: Its name, for messages.

    Raises:
        UsageError: There is no rule in it, or one is not as it has to be.
    """
    table = raw.get("rules")
    unknown = sorted(raw.keys() - {"rules"})
    if not isinstance(table, dict) or not table or unknown:
        why = f"it has '{unknown[0]}'" if unknown else "it has no table [rules]"
        remedy = 'write below [rules] lines as \'.*/kernel\' = ["", "model"]'
        raise UsageError(f"{where} is no layout", why=why, remedy=remedy)
    return tuple(_rule(pattern, axes, where) for pattern, axes in table.items())


def _rule(pattern: str, axes: object, where: str) -> Rule:
    if not isinstance(axes, list) or not all(isinstance(name, str) for name in axes):
        what = f"the rule '{pattern}' in {where} cannot be read"
        raise UsageError(what, remedy='give a list of axes, as ["", "model"]')
    return Rule(pattern=pattern, axes=tuple("" if one == WHOLE else one for one in axes))


def read_rules(path: Path) -> tuple[Rule, ...]:
    """Return the rules of a file; raises ``UsageError``."""
    from tfdyno.core.base.codec import read_toml

    return rules_from(read_toml(path), str(path))


def to_toml(rules: Iterable[Rule]) -> str:
    """Return rules as a file that ``read_rules`` reads."""
    lines = [f"{_quoted(one.pattern)} = [{', '.join(map(_quoted, one.axes))}]" for one in rules]
    return "\n".join([_HEAD, "[rules]", *lines, ""])


def rule_word(rule: Rule) -> str:
    """Return a rule as one word of a command: ``.*/kernel=-,model``."""
    return f"{rule.pattern}={','.join(name or WHOLE for name in rule.axes)}"


def read_rule_word(text: str) -> Rule:
    """Return a rule from a word of a command; raises ``UsageError``."""
    pattern, equals, axes = text.rpartition("=")
    if not equals or not pattern:
        raise UsageError(f"--rule {text} cannot be read", remedy="write PATTERN=-,model")
    names = (part.strip() for part in axes.split(","))
    return Rule(pattern=pattern, axes=tuple("" if name == WHOLE else name for name in names))


def check_rules(rules: Iterable[Rule], mesh: DeviceMesh) -> None:
    """Refuse axes that the mesh has not; raises ``UsageError`` with the nearest."""
    for rule in rules:
        check_axes(rule.axes, mesh.names, f"the rule '{rule.pattern}'")


def _words(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _quoted(text: str) -> str:
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    import json

    return json.dumps(text)
