"""The steps that are measured, in the order in which they teach most: ``plan.csv``."""

from __future__ import annotations

import csv
import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PLAN = Path(__file__).parent / "plan.csv"
FRAMEWORKS = ("tensorflow", "jax")
PRECISIONS = ("float32", "tf32", "mixed_float16", "mixed_bfloat16")
EXECUTIONS = ("graph", "xla")
MODES = ("train", "infer")
KEYS = ("model", "precision", "batch", "execution", "mode")
AMPERE = (8, 0)
"""The first compute capability with TF32 and bfloat16 in its tensor cores (CUDA C++ guide)."""


class WrongUseError(Exception):
    """What was asked for cannot be done; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of one model, as it is measured."""

    model: str
    precision: str
    batch: int
    execution: str
    mode: str
    backend: str
    why: str = ""

    @property
    def name(self) -> str:
        """How it is spoken of."""
        words = (self.model, self.precision, f"b{self.batch}", self.execution, self.mode)
        return " ".join(words) + ("" if self.backend == "tensorflow" else f" {self.backend}")

    @property
    def fields(self) -> dict[str, str | int]:
        """What its row begins with."""
        names = (*KEYS, "backend")
        return {name: getattr(self, name) for name in names}


def read_plan(backend: str, path: Path = PLAN) -> tuple[Step, ...]:
    """All steps in their order; JAX has no graph mode, so it has those under XLA only."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return tuple(
        Step(
            model=model,
            precision=line["precision"],
            batch=int(batch),
            execution=line["execution"],
            mode=line["mode"],
            backend=backend,
            why=line["why"],
        )
        for line in lines
        if backend == "tensorflow" or line["execution"] == "xla"
        for model, _, batch in (word.partition(":") for word in line["steps"].split())
    )


def only_models(steps: Sequence[Step], models: Iterable[str]) -> tuple[Step, ...]:
    """The steps of these models.

    Raises:
        WrongUseError: The plan has no such model; the nearest name is told.
    """
    known = {step.model for step in steps}
    wanted = [model.strip() for model in models if model.strip()]
    for model in wanted:
        if model not in known:
            raise _unknown(model, known, "model of the plan")
    return tuple(step for step in steps if step.model in wanted)


def subset(steps: Sequence[Step], words: Iterable[str]) -> tuple[Step, ...]:
    """The steps that ``KEY=VALUE`` words mean; values of one key are alternatives.

    Raises:
        WrongUseError: A word has no ``=``, or its key or value is unknown, or no step is left.
    """
    asked: dict[str, set[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise WrongUseError(f"'{word}' is no subset: write it as KEY=VALUE, e.g. mode=train")
        if key not in KEYS:
            raise _unknown(key, KEYS, "key of a subset")
        values = {str(getattr(step, key)) for step in read_plan("tensorflow")}
        if value not in values:
            raise _unknown(value, values, f"{key} of the plan")
        asked.setdefault(key, set()).add(value)
    return tuple(
        step
        for step in steps
        if all(str(getattr(step, key)) in values for key, values in asked.items())
    )


def for_card(steps: Sequence[Step], capability: tuple[int, int] | None) -> tuple[Step, ...]:
    """The steps whose precision the card has: before Ampere neither TF32 nor bfloat16."""
    if capability is None or capability >= AMPERE:
        return tuple(steps)
    return tuple(step for step in steps if step.precision not in ("tf32", "mixed_bfloat16"))


def _unknown(word: str, known: Iterable[str], what: str) -> WrongUseError:
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
    return WrongUseError(f"'{word}' is no {what}: {hint}")
