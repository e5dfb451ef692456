"""Numbers with more bits than the model needs, or with bits that the device is slow at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.bottleneck.draft import Draft, evidence, of_step, taking
from tfdyno.rules.bottleneck.tables import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.bottleneck.seen import Seen

_SHOWN = 4


def float64(seen: Seen) -> Iterator[Draft]:
    """Work in 64 bits, seen in the profile or in the variables of the model.

    Inputs alone are no finding: NumPy makes them so, and Keras casts them once.
    """
    facts, operations = seen.facts, seen.facts.operations
    inputs = [one for one in facts.float64 if one.startswith("input")]
    variables = [one for one in facts.float64 if one not in inputs]
    if operations is not None and operations.float64_s > 0.0:
        part_s = min(operations.float64_s, seen.split.parts_s["compute"])
        told = [evidence(f"operations on 64 bits: {of_step(seen, part_s)}", "profile")]
    elif variables:
        part_s = seen.split.parts_s["compute"]
        told = []
    else:
        return
    if not seen.counts(part_s):
        return
    name = "precision.float64" if facts.device == "cpu" else "precision.float64_on_card"
    told += [
        evidence(f"{one} has 64 bits", "variables and inputs") for one in facts.float64[:_SHOWN]
    ]
    # A policy changes layers; 64 bits that come from the data or from tf.Variable are the script's.
    settings = {"precision": "float32"} if variables and facts.source == "run" else {}
    what = (variables or inputs or ["operations of the step"])[0]
    yield taking(seen, name, part_s, *told, settings=settings, values={"what": what})


def half_on_cpu(seen: Seen) -> Iterator[Draft]:
    """Find 16 bits that a CPU has to turn into 32 for each operation."""
    facts, part_s = seen.facts, seen.split.parts_s["compute"]
    if facts.device != "cpu" or not facts.precision.endswith(("float16", "bfloat16")):
        return
    if seen.counts(part_s) and part_s >= limits()["least_part_ratio"] * seen.step_s:
        told = evidence(f"the policy is {facts.precision} on a CPU", "dtype policy")
        part = evidence(f"computing: {of_step(seen, part_s)}", "steps")
        yield taking(seen, "precision.half_on_cpu", part_s, told, part,
                     values={"policy": facts.precision})  # fmt: skip


PRECISION_RULES = (float64, half_on_cpu)
