"""What is known of today's software, in words and tables: own rows first, worst first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.catalog.time_model import kernel_tables
from tfdyno_truth.cells import share
from tfdyno_truth.sections import Section, Table, markdown
from tfdyno_truth.today import OWN, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tfdyno_truth.today import Found, Judged, Swept

NEAR = 0.08
FIRST, LAST = "<!-- today -->", "<!-- /today -->"
"""What stands between them in a page is written by ``tfdyno-truth today``."""
ANSWER = """\
**With the software that people install today** (TensorFlow 2.21 and Keras 3 on an H200, {own} steps
measured for tfdyno): median error {own_median} with the kind of model left out of the fit, worst
{own_worst}; the 90 % interval holds {own_held} of {own}. On {modern} published steps of 2022 to
2026 (TensorFlow 2.12 to 2.20, JAX 0.4 to 0.8): median {modern_median}, mean {modern_mean}, with the
model left out; median {outer_median}, mean {outer_mean} with model, card and source left out at
once; intervals, made of errors of that last kind, hold {modern_held}.

Steps of software before that (TensorFlow 1.15 to 2.10, PyTorch) are judged below, in a law and
constants of their own: `--tf 2.4` asks for them."""
OWN_PROSE = """\
`truth/own/steps.jsonl`, measured by `scripts/gpu_truth`: the step of `model.train_step` in one
`tf.function`, data on the card, median of several windows. *Fitted*: constants that have seen the
row. *Model left out*, *outer*: constants that have seen no row of its kind of model; or of its
kind of model, its card or its source. All own rows are of one card and one source, so *outer* rests
on published rows alone. Each figure is predicted over measured.

**Read them as optimistic.** Five priors were read off own rows, and hold the constants where few
rows speak: `t_step` (mlp), `u_unaligned` (gpt2_small), `load_latency` (ResNet-50 without XLA),
`host_primitive` (BERT-base), `t_recurrent` (lstm_text). Of the steps without XLA, ResNet-50 was
told to 3 % with `load_latency` from the other row, and the LSTM to 15 % with `t_recurrent` taken to
be `host_primitive`; nothing else says what `host_primitive` is. Of the first six steps under XLA,
ResNet-50 (twice), EfficientNet and ConvNeXt rest on no prior that has seen them.

**Fourteen were told blind.** The steps of 2026-11-27 were measured when the constants stood: told
over measured was then 0.74 and 0.96 (BERT-base in float16 and TF32), 0.80 and 0.82 (mlp with and
without XLA), 0.84 and 0.92 (ViT without and with XLA), 0.86 (3D U-Net), 1.02 and 1.16 (VGG-16 with
and without XLA), 1.10 (DCGAN), 1.12 (GRU), 1.18 (conv1d), 1.52 (recommender), and 204 (the 3D U-Net
without XLA): a median of 16 % off. The last was a mistake, mended since: TensorFlow adds up few
long columns in passes of sixteen rows, not each by one thread. The intervals held thirteen of the
fourteen.

**Inference without XLA is not known.** Four small networks were measured by a call that did three
operations more on the host than their rows said, and were told 0.26 to 0.62 of it. Such an
operation takes some tenth of a millisecond, which does not explain all of the 0.8 to 1.9 ms. The
call is mended; the rows are thrown away, and no others are there.

**BERT-base in float16 waits for the host.** A profile of 2026-11-27 shows it: loss scaling updates
the weights only if all gradients are finite, and TensorFlow's program copies that answer to the
host, which then begins the next call while the card stands still (401 W). But the five other steps
in float16 under XLA scale their loss too and are told 0.84 to 1.10 of their time without such a
wait; VGG-16, DCGAN and the 3D U-Net drew 647 W and more. So the law has no term for it: refitted
with 6 us for each variable that a call reads (647 in BERT-base) it would tell 0.95 of BERT-base
unseen, but 1.22 of ResNet-50, 1.19 of EfficientNet and 1.30 of DCGAN. A time for each kernel or for
each call does no better. Why BERT-base waits so much longer than those is not known."""
SWEPT_PROSE = """\
`truth/own/swept`: steps of one machine (an H200 on 2026-11-27), and what `tfdyno calibrate
--seconds 30` found there eleven minutes before or less. Constants have seen no row of the kind
of model; the priors stand as above. The host was slower than the one that the law was learned on,
which the sweep tells and no data sheet does. Five of the seven are steps of the table above, which
took 0.91 to 1.02 of this time when they were measured first.

Told within 8 %: {plain} of {all} without the sweep, {swept} with it."""
MODERN_PROSE = """\
`truth/published/modern.csv`. Rows are averaged in groups of one model, card, precision and mode.
*Host-bound* are image models at a batch below 16 and steps that the source calls so: the host
starts convolutions one by one, and hosts of the sources differ by two and a half times. Judged but
not learned from: `sd14-unet`, read off a progress bar; `mlp-10x128`, which includes the overhead of
`fit`; GPT-2 on T4, which reached 8 % of the card's peak for a reason nobody knows."""


def block(found: Found) -> str:
    """What stands at the top of ``docs/accuracy.md``."""
    told = "\n".join(markdown(section) + "\n" for section in sections(found))
    return f"{FIRST}\n\n{answer(found)}\n\n{told}\n{LAST}"


def put(path: Path, told: str) -> str:
    """The page with the block in place of its own, or behind its first lines."""
    text = path.read_text()
    if FIRST in text:
        return re.sub(rf"{FIRST}.*?{LAST}", lambda _old: told, text, count=1, flags=re.S)
    head, rest = text.split("\n\n", 2)[:2], text.split("\n\n", 2)[2]
    return "\n\n".join([*head, told, rest])


def answer(found: Found) -> str:
    """The errors on what is new, in a paragraph."""
    own, modern = _own(found), _modern(found)
    own_errors = [_error(one, "model_s") for one in own]
    return ANSWER.format(
        own=len(own),
        own_median=share(float(np.median(own_errors))),
        own_worst=share(max(own_errors)),
        own_held=sum(_held(one, found, "model_s") for one in own),
        modern=len(modern),
        modern_median=share(_of_groups(modern, "model_s", np.median)),
        modern_mean=share(_of_groups(modern, "model_s", np.mean)),
        outer_median=share(_of_groups(modern, "outer_s", np.median)),
        outer_mean=share(_of_groups(modern, "outer_s", np.mean)),
        modern_held=f"{_held_share(modern, found):.0%}",
    )


def sections(found: Found) -> Iterator[Section]:
    """Own rows, strata, and the worst published ones."""
    yield Section(title="Today's software on a real card", prose=OWN_PROSE, table=_own_table(found))
    if found.swept:
        prose = SWEPT_PROSE.format(
            all=len(found.swept),
            plain=_near(found.swept, "before_s"),
            swept=_near(found.swept, "after_s"),
        )
        yield Section(title="On a machine that was swept before", prose=prose, table=_swept(found))
    yield Section(title="Published steps of today's software", prose=MODERN_PROSE,
                  table=_strata(found))  # fmt: skip
    yield Section(title="The worst of them", table=_worst(found), below=True)
    yield Section(title="Constants of today's software", table=_constants(found))


def own_text(found: Sequence[tuple[str, float, float]]) -> str:
    """Own rows by the shipped constants, a line each: the name, measured and predicted seconds."""
    lines = [
        f"  {name:<58} {measured * 1e3:9.2f} ms  told {told * 1e3:9.2f} ms  {told / measured:5.2f}"
        for name, measured, told in sorted(found, key=lambda row: -abs(np.log(row[2] / row[1])))
    ]
    errors = [abs(told / measured - 1.0) for _, measured, told in found]
    head = f"Own rows, shipped constants: median error {share(float(np.median(errors)))}"
    return "\n".join([head, *lines])


def _own_table(found: Found) -> Table:
    rows = [
        (
            one.case.name,
            f"{one.case.row.step_s * 1e3:.3g}",
            *(f"{getattr(one, k) / one.case.row.step_s:.2f}"
              for k in ("fitted_s", "model_s", "outer_s")),
            "yes" if _held(one, found, "model_s") else "no",
        )
        for one in sorted(_own(found), key=lambda one: -_error(one, "model_s"))
    ]  # fmt: skip
    headings = ("step", "measured ms", "fitted", "model left out", "outer", "interval holds")
    return Table(headings=headings, rows=tuple(rows))


def _near(some: Sequence[Swept], key: str) -> int:
    """How many steps are told within ``NEAR``."""
    return sum(abs(getattr(one, key) / one.case.row.step_s - 1.0) <= NEAR for one in some)


def _swept(found: Found) -> Table:
    def off(one: Swept, told_s: float) -> float:
        return told_s / one.case.row.step_s

    rows = [
        (
            one.case.name,
            f"{one.case.row.step_s * 1e3:.3g}",
            f"{off(one, one.before_s):.2f}",
            f"{off(one, one.after_s):.2f}",
            "yes" if abs(np.log(off(one, one.after_s))) <= one.log_width_ratio else "no",
        )
        for one in sorted(found.swept, key=lambda one: -abs(np.log(off(one, one.after_s))))
    ]
    headings = ("step", "measured ms", "without the sweep", "with it", "interval holds")
    return Table(headings=headings, rows=tuple(rows))


def _strata(found: Found) -> Table:
    modern = _modern(found)
    sets = [
        ("all", modern),
        ("host-bound", [one for one in modern if one.case.row.launch_bound]),
        ("all others", [one for one in modern if not one.case.row.launch_bound]),
    ]
    ways: tuple[tuple[str, Callable[[Judged], str]], ...] = (
        ("generation ", lambda one: one.case.generation),
        ("", lambda one: one.case.bucket),
        ("", lambda one: one.case.row.slug),
    )
    for title, label_of in ways:
        labels = sorted({label_of(one) for one in modern})
        sets += [
            (f"{title}{label}", [one for one in modern if label_of(one) == label])
            for label in labels
        ]
    rows = []
    for label, some in sets:
        rows.append((
            label,
            *(share(_of_groups(some, key, how)) for key in ("model_s", "outer_s")
              for how in (np.mean, np.median)),
            f"{_held_share(some, found):.0%}",
            f"{np.exp(np.median([np.log(o.outer_s / o.case.row.step_s) for o in some])):.2f}",
            f"{len(some)}",
        ))  # fmt: skip
    headings = ("rows", "model left out: mean", "median", "outer: mean", "median",
                "interval holds", "outer bias", "steps")  # fmt: skip
    return Table(headings=headings, rows=tuple(rows))


def _worst(found: Found, count: int = 15) -> Table:
    ordered = sorted(_modern(found), key=lambda o: -abs(np.log(o.outer_s / o.case.row.step_s)))
    rows = [
        (
            one.case.name,
            one.case.row.source,
            one.case.row.version,
            f"{one.case.row.step_s * 1e3:.3g}",
            f"{one.outer_s / one.case.row.step_s:.2f}",
        )
        for one in ordered[:count]
    ]
    headings = ("step", "source", "software", "measured ms", "outer over measured")
    return Table(headings=headings, rows=tuple(rows), words=3)


def _constants(found: Found) -> Table:
    tables = {"": kernel_tables()["parameters"], **kernel_tables()["software"]}
    newest = list(found.values)[-1]
    rows = [
        (name, generation or "all", table[name]["unit"],
         "fitted" if table[name]["fitted"] else "taken",
         f"{found.values[generation or newest][name]:.3g}")
        for generation, table in tables.items()
        for name in table
    ]  # fmt: skip
    return Table(headings=("constant", "generation", "unit", "how", "value"), rows=tuple(rows),
                 words=4)  # fmt: skip


def _own(found: Found) -> list[Judged]:
    return [one for one in found.judged if one.case.row.table == OWN]


def _modern(found: Found) -> list[Judged]:
    return [one for one in found.judged if one.case.row.table != OWN]


def _error(one: Judged, key: str) -> float:
    return float(abs(getattr(one, key) / one.case.row.step_s - 1.0))


def _held(one: Judged, found: Found, key: str) -> bool:
    log_error = abs(np.log(getattr(one, key) / one.case.row.step_s))
    return bool(log_error <= width_of(found.widths, one.case))


def _held_share(some: Sequence[Judged], found: Found) -> float:
    return float(np.mean([_held(one, found, "outer_s") for one in some]))


def _of_groups(some: Sequence[Judged], key: str, how: Callable[[list[float]], object]) -> float:
    """A statistic of the mean errors of groups of one model, card, precision, mode and source."""
    groups: dict[object, list[float]] = {}
    for one in some:
        row = one.case.row
        groups.setdefault((*row.group, row.execution, row.source), []).append(_error(one, key))
    return float(how([float(np.mean(errors)) for errors in groups.values()]))  # type: ignore[arg-type]
