"""What a rule concluded, and the words that its cause has for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from tfdyno.core.base.errors import ToolError
from tfdyno.core.base.units import DAY_S, HOUR_S, MINUTE_S, significant
from tfdyno.core.doctor.finding import Evidence
from tfdyno.core.measure.bottleneck import Bottleneck, BottleneckClass, Gain
from tfdyno.core.train.jax_plan import WITHOUT
from tfdyno.rules.bottleneck.gains import amdahl
from tfdyno.rules.bottleneck.seen import Seen
from tfdyno.rules.bottleneck.tables import cause
from tfdyno.rules.wording import fill, steps, text_in
from tfdyno.words.base.language import say, spoken
from tfdyno.words.diagnose.told import fact_words

if TYPE_CHECKING:
    from tfdyno.core.measure.software import Backend

_UNITS = (
    (259_200.0, "days", 1 / DAY_S), (5_400.0, "h", 1 / HOUR_S), (120.0, "min", 1 / MINUTE_S),
    (1.0, "s", 1.0), (1e-3, "ms", 1e3), (0.0, "µs", 1e6),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A cause with what speaks for it, before it is put into words."""

    cause: str
    evidence: tuple[Evidence, ...]
    gain: Gain | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    """Fill the texts of the cause."""
    settings: Mapping[str, str] | None = None
    """None: those of the cause itself."""
    place: str = ""
    outranks: bool = False
    """Leads whatever others gain, though its cause does not always."""
    explained_by: tuple[str, ...] = ()
    """Causes of which this one is a mere symptom."""


Rule = Callable[[Seen], Iterator[Draft]]


def taking(
    seen: Seen,
    name: str,
    part_s: float,
    *told: Evidence,
    values: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    place: str = "",
    explained_by: tuple[str, ...] = (),
) -> Draft:
    """Return the draft of a cause whose fix takes shares of one part of the step away."""
    return Draft(
        cause=name,
        evidence=told,
        gain=amdahl(seen.step_s, part_s, cause(name).removes),
        values={"share": percent(part_s / seen.step_s), **(values or {})},
        settings=settings,
        place=place,
        explained_by=explained_by,
    )


def bottleneck(draft: Draft, backend: Backend = "tensorflow") -> Bottleneck:
    """Return a draft in words, in the language of the answer.

    Args:
        draft: Of a rule.
        backend: Of Keras: which steps of the fix hold, and which settings there are.

    Raises:
        ToolError: No step of the fix applies, which is a fault of the rules.
    """
    words = cause(draft.cause)
    values = {"backend": backend, **draft.values}
    fix = tuple(steps(words.fix, values, spoken()))
    summary = fill(text_in(words.summary, spoken()), values)
    settings = dict(words.settings if draft.settings is None else draft.settings)
    if not fix or not summary:
        raise ToolError(f"the texts of {draft.cause} do not fit what was found")
    return Bottleneck(
        bottleneck_class=cast("BottleneckClass", words.bottleneck_class),
        cause=draft.cause,
        summary=summary,
        evidence=draft.evidence,
        fix=fix,
        expected_gain=draft.gain,
        settings=settings_on_jax(settings) if backend == "jax" else settings,
        place=draft.place,
    )


def settings_on_jax(settings: Mapping[str, str]) -> dict[str, str]:
    """Return what the settings of a fix are on JAX; empty where one of them does not exist."""
    if WITHOUT.keys() & settings.keys():
        return {}
    graph = {"execution": "xla"} if settings.get("execution") == "graph" else {}
    return {**settings, **graph}


def evidence(sentence: str, source: str, /, **figures: object) -> Evidence:
    """Return one thing that was seen: sentence, with its figures, and source are said."""
    return Evidence(text=say(sentence, **figures), source=say(source))


def quoted(text: str, source: str) -> Evidence:
    """Return one thing that was seen, in the words that the facts have for it."""
    return Evidence(text=fact_words(text), source=say(source))


def duration(seconds_s: float) -> str:
    """Write ``2.5 h``, ``1.2 s``, ``12.3 ms``, ``4.5 µs``."""
    _, unit, factor = next(row for row in _UNITS if seconds_s >= row[0] or row[0] == 0.0)
    count = significant(seconds_s * factor)
    return say("{count} days", count=count) if unit == "days" else f"{count} {unit}"


def percent(ratio: float) -> str:
    """Write ``12 %``, without decimals."""
    return f"{100.0 * ratio:.0f} %"


def of_step(seen: Seen, seconds_s: float) -> str:
    """Write ``12 ms of a step of 40 ms (30 %)``."""
    return say(
        "{part} of a step of {step} ({share})",
        part=duration(seconds_s),
        step=duration(seen.step_s),
        share=percent(seconds_s / seen.step_s),
    )
