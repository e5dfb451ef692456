"""Arithmetic that a lever makes faster, or that has bits which the device is slow at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.bottleneck.draft import Draft, evidence, of_step, percent, quoted, taking
from tfdyno.rules.bottleneck.split import share
from tfdyno.rules.bottleneck.tables import limits
from tfdyno.rules.condition import version_key
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.bottleneck.seen import Seen

_ARITHMETIC = ("gemm", "conv")
_FULL = ("float32", "")
_SHOWN = 4
_HALF = ("float16", "bfloat16")


def half_policy(seen: Seen) -> str:
    """Return the 16-bit policy that the card's tensor cores are made for; empty: none, or a CPU."""
    facts = seen.facts
    if facts.device != "gpu" or facts.precision not in _FULL:
        return ""
    have = version_key(facts.compute_capability)
    if have and have < (7,):
        return ""
    return "mixed_bfloat16" if have >= (8,) else "mixed_float16"


def arithmetic_s(seen: Seen) -> float:
    """Return seconds of a step in products of matrices and in convolutions."""
    return seen.split.parts_s["compute"] * share(seen.split.compute_s, *_ARITHMETIC)


def precision(seen: Seen) -> Iterator[Draft]:
    """Find work that tensor cores multiply faster with 16-bit numbers."""
    policy, part_s = half_policy(seen), arithmetic_s(seen)
    if policy and seen.counts(part_s):
        told = evidence(
            "products and convolutions in {precision}: {share} of the step",
            "profile",
            precision=seen.facts.precision or "float32",
            share=percent(part_s / seen.step_s),
        )
        yield taking(seen, "compute.precision", part_s, told, values={"policy": policy},
                     settings={"precision": policy})  # fmt: skip


def batch(seen: Seen) -> Iterator[Draft]:
    """Find a card far from its peak and with memory left: it computes more samples at once."""
    facts, part_s = seen.facts, arithmetic_s(seen)
    if facts.device != "gpu" or not (facts.step_flops and facts.peak_flops_per_s and part_s):
        return
    reached = facts.step_flops / part_s / facts.peak_flops_per_s
    used = facts.memory_used_bytes / facts.memory_limit_bytes if facts.memory_limit_bytes else 1.0
    if reached > limits()["low_peak_ratio"] or used > limits()["half_full_ratio"]:
        return
    if not facts.batch_size or not seen.counts(part_s):
        return
    larger = str(2 * facts.batch_size)
    told = (
        evidence(
            "{share} of the card's peak is reached",
            "profile and arithmetic",
            share=percent(reached),
        ),
        evidence("{share} of its memory is used", "allocator", share=percent(used)),
    )
    yield taking(seen, "compute.batch", part_s, *told, settings={"batch_size": larger},
                 values={"batch": str(facts.batch_size), "larger": larger})  # fmt: skip


def alignment(seen: Seen) -> Iterator[Draft]:
    """Find widths that tensor cores have to fill up."""
    facts, part_s = seen.facts, arithmetic_s(seen)
    is_half = any(name in facts.precision for name in _HALF)
    if facts.device == "gpu" and facts.unaligned and is_half and seen.counts(part_s):
        told = (quoted(text, "layers") for text in facts.unaligned)
        yield taking(seen, "compute.alignment", part_s, *told,
                     values={"layer": facts.unaligned[0]})  # fmt: skip


def float64(seen: Seen) -> Iterator[Draft]:
    """Find work in 64 bits, seen in the profile or in the variables of the model.

    Inputs alone are no finding: NumPy makes them so, and Keras casts them once.
    """
    facts, operations = seen.facts, seen.facts.operations
    inputs = [one for one in facts.float64 if one.startswith("input")]
    variables = [one for one in facts.float64 if one not in inputs]
    if operations is not None and operations.float64_s > 0.0:
        part_s = min(operations.float64_s, seen.split.parts_s["compute"])
        told = [evidence("operations on 64 bits: {part}", "profile", part=of_step(seen, part_s))]
    elif variables:
        part_s = seen.split.parts_s["compute"]
        told = []
    else:
        return
    if not seen.counts(part_s):
        return
    name = "precision.float64" if facts.device == "cpu" else "precision.float64_on_card"
    told += [
        evidence("{one} has 64 bits", "variables and inputs", one=one)
        for one in facts.float64[:_SHOWN]
    ]
    # A policy changes layers; 64 bits that come from the data or from tf.Variable are the script's.
    settings = {"precision": "float32"} if variables and facts.source == "run" else {}
    what = (variables or inputs or [say("operations of the step")])[0]
    yield taking(seen, name, part_s, *told, settings=settings, values={"what": what})


def half_on_cpu(seen: Seen) -> Iterator[Draft]:
    """Find 16 bits that a CPU has to turn into 32 for each operation."""
    facts, part_s = seen.facts, seen.split.parts_s["compute"]
    if facts.device != "cpu" or not facts.precision.endswith(("float16", "bfloat16")):
        return
    if seen.counts(part_s) and part_s >= limits()["least_part_ratio"] * seen.step_s:
        told = evidence(
            "the policy is {precision} on a CPU", "dtype policy", precision=facts.precision
        )
        part = evidence("computing: {part}", "steps", part=of_step(seen, part_s))
        yield taking(seen, "precision.half_on_cpu", part_s, told, part,
                     values={"policy": facts.precision})  # fmt: skip


COMPUTE_RULES = (precision, batch, alignment)
PRECISION_RULES = (float64, half_on_cpu)
