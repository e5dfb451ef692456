"""Fits the constants of today's software, and judges them on rows that the fits had not seen."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from tfdyno.catalog.generations import generations, software
from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import kernel_tables, time_model
from tfdyno.core.choose.time_model import BucketWidth, Parameter, TimeModel
from tfdyno.jobs.machine.card_files import reference
from tfdyno.model.time import graph_time, intervals, kernel_law
from tfdyno.model.time.calibrate.steps import with_sweep
from tfdyno.model.time.kernel_table import KernelTable
from tfdyno.model.time.precision import tf32_allowed
from tfdyno.store.card_files import read_card_file
from tfdyno_truth.own_rows import STEPS, own_rows
from tfdyno_truth.records import program_of, read_record
from tfdyno_truth.rows import Row, read_rows
from tfdyno_truth.toml import WIDTHS
from tfdyno_truth.weighted import quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tfdyno.core.choose.generation import Framework

    Floats = NDArray[np.float64]
    Values = Mapping[tuple[str, str], float]

OWN = "own"
SWEPT = STEPS.parent / "swept"
SWEEP = "h200-sxm-141gb.tensorflow.json"
"""Card file in ``SWEPT``, of the machine on which the steps beside it were measured."""
OWN_WEIGHT = 2.0
"""A step measured by ourselves, with its versions and clocks, says as much as two published."""
PRIOR_WEIGHT = 2.0
"""As many groups as would have to agree before a constant leaves its prior far behind; for the
other law it is 8 (``fit.PRIOR_WEIGHT``), of fifteen times as many groups."""
NOT_LEARNED = {
    ("keras issue 19953", "mlp-10x128"): "includes the overhead of fit",
    ("keras.io Stable Diffusion guide", "sd14-unet"): "read off a progress bar",
    ("keras.io examples", "gpt2-base-full"): "8 % of the peak; whether XLA ran is inferred",
    ("keras.io examples", "gpt2-base-lora"): "8 % of the peak; whether XLA ran is inferred",
}
"""Rows that are judged and not learned from, by source and model, and why."""
ROBUST_SCALE = 0.1
EVALUATIONS = 20
COVERAGE = 0.9
PARENT_ROWS = 20.0
"""A bucket has as much say in its width as all buckets together with so many rows."""
FEWEST = 5
"""Rows below which a bucket has no width of its own."""
UNSEEN_FACTOR = 1.25
DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A measured step of today's software, and what its prediction needs."""

    row: Row
    generation: str
    family: str
    work: kernel_law.Work | graph_time.GraphWork

    @property
    def bucket(self) -> str:
        """Of its interval, as ``model.intervals`` forms it."""
        return f"{self.family}/{self.row.mode}/{self.row.execution}"

    @property
    def name(self) -> str:
        """The step in words."""
        row = self.row
        size = f"b{row.batch_size} {row.execution} {row.mode}"
        return f"{row.function} {row.precision} {size}, {row.gpu}"

    @property
    def log_step(self) -> float:
        """Logarithm of the measured seconds."""
        return float(np.log(self.row.step_s))

    def predict(self, values: Mapping[str, float]) -> float:
        """Seconds of the step by these constants."""
        if isinstance(self.work, graph_time.GraphWork):
            priced = graph_time.seconds(self.work, values)
            return float(graph_time.step_of(self.work, priced, values).step_s[0])
        found = kernel_law.seconds(self.work, values)
        return float(kernel_law.step_of(self.work, found, values).step_s[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """A case with what is predicted of it."""

    case: Case
    fitted_s: float
    """By constants that have seen it."""
    model_s: float
    """Its kind of model left out."""
    outer_s: float
    """Its kind of model, its card and its source left out at once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swept:
    """A step measured on a machine that ``tfdyno calibrate`` swept just before."""

    case: Case
    before_s: float
    """Its kind of model left out, without the sweep."""
    after_s: float
    """The same with the sweep."""
    log_width_ratio: float
    """Half-width of the interval, as an estimate with that sweep has it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """A fit, and how good it is."""

    values: dict[str, dict[str, float]]
    """Generation -> fitted constants by name."""
    judged: tuple[Judged, ...]
    widths: dict[str, BucketWidth]
    swept: tuple[Swept, ...] = ()


def cases(folder: Path) -> list[Case]:
    """Own and published steps that today's law prices, of those that have a record."""
    rows = [row for row in (*own_rows(), *read_rows(tables=("modern",))) if row.gpus == 1]
    found = [_case(row, folder) for row in rows if row.step_s > 0.0]
    return [one for one in found if one]


def shipped_own(folder: Path) -> list[tuple[str, float, float]]:
    """Own steps by the shipped constants: name, measured and predicted seconds."""
    found = [one for one in cases(folder) if one.row.table == OWN]
    return [
        (one.name, one.row.step_s, one.predict(time_model(one.generation).values)) for one in found
    ]


def generation_of(row: Row) -> str:
    """Generation of the software that a row was measured with, from the words of its source."""
    framework: Framework = "tensorflow" if row.engine == "tensorflow" else "jax"
    if row.engine == "reactant":
        return generations()[-1].name
    words = row.version.replace("/", " ").replace(",", " ").replace("-", " ").split()
    numbers = [word for word in words if word[:1].isdigit() and "." in word]
    named = [b for a, b in pairwise(words) if a in ("TF", "JAX") and b in numbers]
    version = next(iter(named or numbers), "")
    if version:
        return software(framework, version, "asked").generation
    return (
        generations()[1].name if words and words[0].startswith("2023") else generations()[-1].name
    )


def _case(row: Row, folder: Path, model: TimeModel | None = None) -> Case | None:
    generation = generation_of(row)
    model = model or time_model(generation)
    record = read_record(folder, row.record, row.precision)
    if record is None or row.execution not in model.kernel_executions or not model.product_rates:
        return None
    graph = row.execution == "graph"
    program = record.per_primitive if graph else program_of(record, "xla", row.accumulation)
    if program is None:
        return None
    gpu, clock = find(row.slug), model.sustained_clock.get(row.slug, 1.0)
    tf32, rates = tf32_allowed(row.precision), model.product_rates
    work: kernel_law.Work | graph_time.GraphWork
    if graph:
        work = graph_time.work_of(
            program, row.batch_size, gpu, tf32_allowed=tf32, rates=rates, clock_ratio=clock,
            drains=row.mode == "train" and row.precision == "mixed_float16",
        )  # fmt: skip
    else:
        work = kernel_law.work_of(
            program, row.batch_size, gpu, tf32_allowed=tf32, rates=rates, clock_ratio=clock
        )
    family = intervals.model_family(KernelTable.of(record.program))
    return Case(row=row, generation=generation, family=family, work=work)


def parameters() -> dict[tuple[str, str], Parameter]:
    """Every constant by (generation, name); the generation is empty for those that all share."""
    names = {"": kernel_tables()["parameters"], **kernel_tables()["software"]}
    models = {one.name: time_model(one.name) for one in generations()}
    newest = generations()[-1].name
    return {
        (generation, name): models[generation or newest].parameters[name]
        for generation, table in names.items()
        for name in table
    }


def fit(seen: Sequence[Case]) -> Values:
    """Fit the constants that are marked as fitted, by robust least squares on log(step).

    A prior on the logarithm holds what the cases do not identify. Constants of a generation that
    no case is of stay where they are.
    """
    seen = [one for one in seen if (one.row.source, one.row.model) not in NOT_LEARNED]
    known = parameters()
    used = {case.generation for case in seen}
    free = [key for key, one in known.items() if one.fitted and key[0] in {"", *used}]
    low = np.log([max(known[key].low, 1e-9) for key in free])
    high = np.log([known[key].high for key in free])
    prior = np.clip(np.log([known[key].prior for key in free]), low, high)
    sizes = Counter(_group(case.row) for case in seen)
    weight = np.array([
        (OWN_WEIGHT if case.row.table == OWN else 1.0) * sizes[_group(case.row)] ** -0.5
        for case in seen
    ])  # fmt: skip
    measured = np.array([case.log_step for case in seen])
    fixed = {key: one.value if not one.fitted else one.prior for key, one in known.items()}

    def residuals(x: Floats) -> Floats:
        values = _by_generation({**fixed, **dict(zip(free, np.exp(x).tolist(), strict=True))})
        predicted = np.log([case.predict(values[case.generation]) for case in seen])
        return np.concatenate([(predicted - measured) * weight, (x - prior) * PRIOR_WEIGHT])

    found = least_squares(
        residuals, np.clip(prior, low + 1e-6, high - 1e-6), bounds=(low, high), loss="soft_l1",
        f_scale=ROBUST_SCALE, max_nfev=EVALUATIONS,
        x_scale=0.1,
    )  # fmt: skip
    return {**fixed, **dict(zip(free, np.exp(found.x).tolist(), strict=True))}


def _group(row: Row) -> tuple[str, ...]:
    """Rows of one model, card, precision and mode: batches of it are no new evidence."""
    return (*row.group, row.execution, row.source)


def _by_generation(values: Values) -> dict[str, dict[str, float]]:
    shared = {name: value for (generation, name), value in values.items() if not generation}
    return {
        one.name: {**shared, **{n: v for (g, n), v in values.items() if g == one.name}}
        for one in generations()
    }


def judge(known: Sequence[Case], folder: Path, tell: Callable[[str], None]) -> Found:
    """Fit on everything, then leave models, and models, cards and sources at once, out."""
    tell("everything seen")
    whole = fit(known)
    by_model = _left_out(known, lambda a, b: a.row.architecture == b.row.architecture, tell)
    outer = _left_out(known, _alike, tell)
    judged = tuple(
        Judged(
            case=case,
            fitted_s=_predicted(case, whole),
            model_s=_predicted(case, without_model),
            outer_s=_predicted(case, without_alike),
        )
        for case, without_model, without_alike in zip(known, by_model, outer, strict=True)
    )
    kinds = [case.row.architecture for case in known]
    return Found(
        values=_by_generation(whole), judged=judged, widths=widths(judged),
        swept=_swept(dict(zip(kinds, by_model, strict=True)), folder),
    )  # fmt: skip


def _swept(fits: Mapping[str, Values], folder: Path) -> tuple[Swept, ...]:
    """Predict the steps of the machine that was swept, each by the fit without its kind of model.

    Args:
        fits: By the kind that each has not seen; steps of other kinds are left out.
        folder: Kernel records.
    """
    card = read_card_file(SWEPT / SWEEP)
    gpu, found = find(card.card), []
    for row in own_rows(SWEPT / STEPS.name):
        if row.architecture not in fits:
            continue
        plain = _model_of(generation_of(row), fits[row.architecture])
        after = with_sweep(plain, gpu, card, same_software=True, reference=reference())
        one, other = _case(row, folder), _case(row, folder, after)
        assert one
        assert other
        assert after.swept
        found.append(Swept(
            case=one, before_s=one.predict(plain.values), after_s=other.predict(after.values),
            log_width_ratio=after.swept.log_width_ratio,
        ))  # fmt: skip
    return tuple(found)


def _model_of(generation: str, values: Values) -> TimeModel:
    """The shipped law with the constants of a fit."""
    model, own = time_model(generation), _by_generation(values)[generation]
    parameters = {
        name: replace(one, value=own.get(name, one.value)) for name, one in model.parameters.items()
    }
    return replace(model, parameters=parameters)


def _alike(one: Case, other: Case) -> bool:
    """Whether a case tells of another: same kind of model, same chip, or same source."""
    a, b = one.row, other.row
    return a.architecture == b.architecture or a.chip == b.chip or a.source == b.source


def _predicted(case: Case, values: Values) -> float:
    return case.predict(_by_generation(values)[case.generation])


def _left_out(
    known: Sequence[Case],
    alike: Callable[[Case, Case], bool], tell: Callable[[str], None],
) -> list[Values]:  # fmt: skip
    """Return for every case constants that saw nothing like it."""
    folds: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, case in enumerate(known):
        folds[tuple(i for i, other in enumerate(known) if not alike(case, other))].append(index)
    found: dict[int, Values] = {}
    for number, (seen, mine) in enumerate(folds.items(), 1):
        tell(f"fold {number} of {len(folds)}")
        found |= dict.fromkeys(mine, fit([known[i] for i in seen]))
    return [found[index] for index in range(len(known))]


def widths(judged: Sequence[Judged]) -> dict[str, BucketWidth]:
    """Half-widths that hold ``COVERAGE`` of the outer errors, by bucket and over all.

    A bucket's own mean error is drawn towards that of all rows by ``PARENT_ROWS``. Published rows
    alone decide how wide all are: own rows are of one card, which every fit but the outer has seen.
    """
    errors = {id(one): abs(np.log(one.outer_s) - one.case.log_step) for one in judged}
    sizes = Counter(_group(one.case.row) for one in judged)
    weight = {id(one): 1.0 / sizes[_group(one.case.row)] for one in judged}

    def mean(some: Sequence[Judged]) -> float:
        return float(
            np.average([errors[id(o)] for o in some], weights=[weight[id(o)] for o in some])
        )

    overall = mean(judged)
    buckets: defaultdict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        buckets[one.case.bucket].append(one)
    scales, groups = {DEFAULT: overall}, {DEFAULT: len(sizes)}
    for name, some in sorted(buckets.items()):
        count = sum(weight[id(one)] for one in some)
        if len(some) >= FEWEST:
            share = count / (count + PARENT_ROWS)
            scales[name] = share * mean(some) + (1.0 - share) * overall
            groups[name] = round(count)
    relative = np.array([
        errors[id(one)] / scales.get(one.case.bucket, overall) for one in judged
    ])  # fmt: skip
    counts = np.array([
        weight[id(one)] if one.case.row.table != OWN else 0.0 for one in judged
    ])  # fmt: skip
    if not counts.any():
        counts = np.array([weight[id(one)] for one in judged])
    factor = quantile(relative, counts, COVERAGE)
    return {
        name: BucketWidth(log_half_width_ratio=round(factor * scale, 3), groups=groups[name])
        for name, scale in scales.items()
    }


def width_of(known: Mapping[str, BucketWidth], case: Case) -> float:
    """Log half-width of the interval of a case, as an estimate would have it."""
    return known.get(case.bucket, known[DEFAULT]).log_half_width_ratio


def rewritten(text: str, found: Found, version: str) -> str:
    """The text of ``kernel_model.toml`` with fitted values and widths put in.

    Raises:
        ValueError: A constant is not there exactly once.
    """
    for (generation, name), one in parameters().items():
        if not one.fitted:
            continue
        table = f"software.{generation}" if generation else "parameters"
        value = found.values[generation or generations()[-1].name][name]
        pattern = rf"(\[{re.escape(table)}\.{re.escape(name)}\]\nvalue = )\S+"
        text, count = re.subn(pattern, rf"\g<1>{float(f'{value:.4g}')!r}", text)
        if count != 1:
            raise ValueError(f"{count} entries for {table}.{name}")
    measured = sorted({find(one.case.row.slug).compute_capability for one in found.judged},
                      key=float)  # fmt: skip
    listed = ", ".join(f'"{one}"' for one in measured)
    text = re.sub(r"(?m)^capabilities = .*$", f"capabilities = [{listed}]", text, count=1)
    text = re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', text, count=1)
    text = text[: text.index(WIDTHS)] + WIDTHS + "\n"
    return text + "".join(
        f'"{bucket}" = {{ log_half_width_ratio = {one.log_half_width_ratio}, '
        f"groups = {one.groups} }}\n"
        for bucket, one in sorted(found.widths.items())
    )
