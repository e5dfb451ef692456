"""What each term buys: fits without it, judged on cards and models that they have not seen."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import read_toml
from tfdyno.core.base.errors import UsageError
from tfdyno_truth import tables
from tfdyno_truth.fit import neutral
from tfdyno_truth.ratchet import fingerprint
from tfdyno_truth.rows import TRUTH
from tfdyno_truth.run import fit_all
from tfdyno_truth.score import judged
from tfdyno_truth.sheet import whole
from tfdyno_truth.ways import ONE_NEW, WAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tfdyno.core.choose.time_model import Parameter, TimeModel

GROUPS = TRUTH / "ablation.toml"
RESULTS = TRUTH / "ablation.csv"
NOTHING = "nothing"
"""The model with all its terms, which the others are compared with."""
SETS = {"TensorFlow": "tensorflow", "all": "all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What is taken out together."""

    name: str
    title: str
    held: tuple[tuple[str, float], ...]
    """Constants and the values that they are held at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablated:
    """Mean errors without a term; the columns of ``truth/ablation.csv``."""

    name: str
    title: str
    constants: str
    """Fingerprint of the model that the term was taken out of."""
    rows: int
    gpu_tensorflow_mean: float
    gpu_all_mean: float
    gpu_all_p90: float
    model_tensorflow_mean: float
    model_all_mean: float
    model_all_p90: float


def terms(model: TimeModel, path: Path = GROUPS) -> dict[str, Term]:
    """All that can be taken out: the groups of the file, then every fitted constant alone.

    Raises:
        UsageError: A group names a constant that does not exist.
    """
    found = {NOTHING: Term(name=NOTHING, title="nothing", held=())}
    for name, raw in read_toml(path).items():
        found[name] = Term(name=name, title=raw["title"], held=_held(name, raw, model, path))
    for name, parameter in model.parameters.items():
        if parameter.fitted and name not in found:
            found[name] = Term(name=name, title=name, held=((name, neutral(parameter)),))
    return found


def _held(
    name: str, raw: dict[str, Any], model: TimeModel, path: Path
) -> tuple[tuple[str, float], ...]:
    held = {one: neutral(model.parameters[one]) for one in raw.get("neutral", ())
            if one in model.parameters}  # fmt: skip
    held |= {one: float(value) for one, value in raw.get("held", {}).items()}
    unknown = {*raw.get("neutral", ()), *held} - set(model.parameters)
    if unknown or not held:
        listed = ", ".join(sorted(unknown)) or "no constant at all"
        raise UsageError(f"{path}: group '{name}' names {listed}", remedy="see time_model.toml")
    return tuple(sorted(held.items()))


def chosen(known: Mapping[str, Term], names: Iterable[str]) -> tuple[Term, ...]:
    """The terms with these names, the groups of the file without any; ``nothing`` always first.

    Raises:
        UsageError: There is no such term; the nearest are named.
    """
    wanted = list(names) or [name for name, term in known.items() if term.title != name]
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or list(known)
            raise UsageError(f"no term '{name}'", remedy=f"did you mean {' or '.join(near)}?")
    return tuple(known[name] for name in dict.fromkeys((NOTHING, *wanted)))


def without(parameters: Mapping[str, Parameter], term: Term) -> dict[str, Parameter]:
    """The parameters with those of the term held; a value may lie outside their range."""
    found = dict(parameters)
    for name, value in term.held:
        old = found[name]
        found[name] = replace(
            old, fitted=False, value=value, low=min(old.low, value), high=max(old.high, value)
        )
    return found


def ablate_all(
    folder: Path, model: TimeModel, wanted: Sequence[Term], processes: int
) -> Iterator[Ablated]:
    """Ablate every term, several at a time, in their order."""
    with get_context("spawn").Pool(min(processes, len(wanted))) as pool:
        yield from pool.imap(_ablate, [(folder, model, term) for term in wanted])


def _ablate(task: tuple[Path, TimeModel, Term]) -> Ablated:
    return ablate(*task)


def ablate(folder: Path, model: TimeModel, term: Term) -> Ablated:
    """Fit without the term and judge it on what was left out."""
    fitted = fit_all(folder, parameters=without(model.parameters, term))
    means: dict[str, float] = {}
    for way in ONE_NEW:
        for line in whole(judged(fitted, WAYS[way].title)):
            if line.label in SETS:
                means[f"{way}_{SETS[line.label]}_mean"] = round(line.score.mean, 4)
            if line.label == "all":
                means[f"{way}_all_p90"] = round(line.score.p90, 4)
    return Ablated(
        name=term.name,
        title=term.title,
        constants=fingerprint(model),
        rows=len(fitted.design.rows),
        **means,
    )


def read_results(path: Path = RESULTS) -> tuple[Ablated, ...]:
    """What is stored, in the order of the file; nothing without a file."""
    return tables.read(path, Ablated)


def store(results: Iterable[Ablated], path: Path = RESULTS) -> None:
    """Put results into the file, in the place of older ones with the same name, atomically."""
    kept = {one.name: one for one in (*read_results(path), *results)}
    tables.write(path, kept.values(), Ablated)
