"""Which rows are meant: ``framework=tensorflow gpu=a100``, with a hint when a word is unknown."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tfdyno_truth.design import Design

KEYS = ("framework", "execution", "mode", "precision", "family", "gpu", "model", "source")


def choose(design: Design, wanted: Iterable[str]) -> NDArray[np.bool_]:
    """The rows that are meant by words like ``gpu=a100``.

    Values of one key are alternatives, different keys must all hold. A value may be the beginning
    of a name up to the end of a word: ``gpu=a100`` means all A100, ``model=resnet50`` all of it.

    Raises:
        UsageError: A word has no ``=``, or its key or value is unknown; the nearest are named.
    """
    asked: defaultdict[str, list[str]] = defaultdict(list)
    for word in wanted:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"'{word}' is no subset", remedy="write it as KEY=VALUE: mode=train")
        if key not in KEYS:
            raise _unknown(key, KEYS, "key of a subset")
        asked[key].append(_slug(value))
    chosen = np.ones(len(design.rows), dtype=bool)
    for key, values in asked.items():
        names = [_names(design, index, key) for index in range(len(design.rows))]
        for value in values:
            if not any(_means(value, each) for each in names):
                raise _unknown(value, {n for each in names for n in each}, f"{key} of a row")
        chosen &= np.array([any(_means(value, each) for value in values) for each in names])
    if asked and not chosen.any():
        raise UsageError("no row has all of this", remedy="ask for less: leave a --subset out")
    return chosen


def _names(design: Design, index: int, key: str) -> tuple[str, ...]:
    """By what a row may be asked for."""
    row = design.rows[index]
    if key == "family":
        return (_slug(design.families[index]),)
    if key == "gpu":
        return (row.slug, _slug(row.gpu), row.chip)
    if key == "model":
        return (_slug(row.function), _slug(row.model), row.architecture)
    return (_slug(getattr(row, key)),)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _means(value: str, names: Sequence[str]) -> bool:
    return any(name == value or name.startswith(f"{value}-") for name in names)


def _unknown(value: str, known: Iterable[str], what: str) -> UsageError:
    names = sorted(set(known))
    near = difflib.get_close_matches(value, names, n=3, cutoff=0.5)
    near = near or [name for name in names if value and value in name][:3]
    listed = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names[:12])}"
    return UsageError(f"'{value}' is no {what}", remedy=listed)
