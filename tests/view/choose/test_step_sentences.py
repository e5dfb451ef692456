"""Each heading about a step follows from its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.view import answers
from tests.view.answers import altered, balanced, judged, with_best

from tfdyno.core.choose.program import Rematerialisation
from tfdyno.view.choose import sentences, step_sentences
from tfdyno.view.draw.layers import LayerGroup

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Advice, Candidate
    from tfdyno.core.choose.estimate import Estimate

GIB = 2.0**30
RECOMPUTED = Rematerialisation(
    need_bytes=20.1 * GIB, held_bytes=13.3 * GIB, limit_bytes=13.5 * GIB, limit_met=True,
    instruction_count=45,
)  # fmt: skip


@pytest.fixture(scope="module")
def advice() -> Advice:
    return answers.advice()


# Memory


def test_memory_says_what_xla_computes_again_and_that_no_device_was_measured(
    advice: Advice,
) -> None:
    told = with_best(advice, rematerialisation=RECOMPUTED, fits_verified=True, fits="yes")
    note = "needs 20.1 GiB; XLA recomputes to hold it in 13.3 GiB"
    lead = step_sentences.memory(told, balanced(told), answers.gpus()).lead
    assert note in lead
    assert lead.endswith("The figure is unverified on a device.")
    words = sentences.answer(told)
    assert f"compiled at this very batch: {note})." in words
    assert "room to spare" not in words


def test_memory_names_the_smallest_size_above_which_every_card_fits(advice: Advice) -> None:
    finding = step_sentences.memory(advice, balanced(advice), answers.gpus())
    assert finding.heading == "The step needs 5.6 GiB: it fits from 12 GB up"
    assert finding.lead.startswith("Activations and inputs take 79% of it and grow")


def test_memory_that_fits_everywhere_or_nowhere_is_said(advice: Advice) -> None:
    fine = judged(advice, "feasible")
    every = replace(fine, ranking=tuple(altered(c, fits="yes") for c in fine.ranking))
    none = replace(fine, ranking=tuple(altered(c, fits="no") for c in fine.ranking))
    best = balanced(advice)
    assert step_sentences.memory(every, best, answers.gpus()).heading.endswith(
        "it fits on every card of the catalogue"
    )
    assert step_sentences.memory(none, best, answers.gpus()).heading.endswith(
        "it fits on no card of the catalogue"
    )


def test_memory_without_a_clear_border_counts_cards(advice: Advice) -> None:
    fine = judged(advice, "feasible")
    ranking = tuple(altered(c, fits="no" if c.gpu == "h200-sxm" else "yes") for c in fine.ranking)
    mixed = replace(fine, ranking=ranking)
    heading = step_sentences.memory(mixed, balanced(advice), answers.gpus()).heading
    assert heading == "The step needs 5.6 GiB: it fits on 10 of 11 cards"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"weights": 8.0, "activations": 2.0}, "Weights, gradients and optimizer state take 80%"),
        ({"weights": 4.0, "activations": 4.0, "workspace": 2.0}, "take 40% of it and grow"),
        ({}, "not known"),
    ],
)
def test_what_takes_the_memory_decides_the_explanation(
    advice: Advice, parts: dict[str, float], words: str
) -> None:
    best = altered(balanced(advice), memory_parts_bytes=parts)
    assert words in step_sentences.memory(advice, best, answers.gpus()).lead


# Causes


def bound(advice: Advice, causes: list[str]) -> list[Candidate]:
    pairs = zip(advice.ranking, causes, strict=False)
    return [altered(candidate, bound_by=cause) for candidate, cause in pairs]


@pytest.mark.parametrize(
    ("causes", "heading"),
    [
        (["memory"] * 5, "Memory traffic sets the pace on each of these cards"),
        (["memory"] * 4 + ["input"], "Memory traffic sets the pace on every card but one"),
        (["compute"] * 3 + ["input"] * 2, "Arithmetic sets the pace on every card but 2"),
        (
            ["memory"] * 2 + ["compute"] * 2,
            "Memory traffic holds back 2 of 4 cards, arithmetic 2",
        ),
        (["launch"], "Kernel launch sets the pace on A100 SXM4 80 GB"),
        ([""], "What holds the cards back is not known"),
    ],
)
def test_the_most_frequent_cause_makes_the_heading(
    advice: Advice, causes: list[str], heading: str
) -> None:
    assert step_sentences.terms(bound(advice, causes)).heading == heading


def test_the_exception_is_named_with_its_cause(advice: Advice) -> None:
    lead = step_sentences.terms(bound(advice, ["memory"] * 2 + ["input"])).lead
    assert lead.endswith("Otherwise: RTX 5090 (waiting for input).")


# Kernels and layers


def with_classes(advice: Advice, classes: dict[str, float]) -> Estimate:
    return replace(balanced(advice).estimate, class_s=classes)


@pytest.mark.parametrize(
    ("classes", "heading"),
    [
        (
            {"convolution": 3.0, "loop": 6.0, "reduce": 1.0},
            "Element-wise kernels take 60% of the kernels’ time, arithmetic kernels 30%",
        ),
        ({"convolution": 7.0, "loop": 3.0}, "Convolutions take 70% of the kernels’ time"),
        ({"window": 9.0, "loop": 1.0}, "Pooling takes 90% of the kernels’ time"),
        (
            {"gemm": 3.5, "loop": 3.4, "reduce": 3.1},
            "No kind of kernel dominates: matrix products take 35%",
        ),
        ({}, "Which kernels take the time is not known"),
    ],
)
def test_the_kind_of_kernel_that_takes_most_makes_the_heading(
    advice: Advice, classes: dict[str, float], heading: str
) -> None:
    assert step_sentences.roofline(with_classes(advice, classes)).heading == heading


def test_a_roofline_that_leaves_much_out_says_so(advice: Advice) -> None:
    estimate = balanced(advice).estimate
    assert step_sentences.coverage(estimate) == ""
    part = replace(estimate, roofline=estimate.roofline[:2])  # 45% and 24% of the step
    assert "69% of the kernels’ time" in step_sentences.coverage(part)


def group(name: str, step_s: float, flops: float) -> LayerGroup:
    return LayerGroup(
        name=name,
        layers=1,
        step_s=step_s,
        by_phase_s={},
        by_class_s={},
        flops=flops,
        traffic_bytes=0.0,
    )


@pytest.mark.parametrize(
    ("groups", "heading"),
    [
        (
            [group("conv2", 5, 2), group("conv3", 3, 4), group("conv4", 2, 4)],
            "No layer dominates: conv2 takes most with 50%",
        ),
        (
            [group("conv2", 6, 2), group("conv3", 2, 4), group("conv4", 2, 4)],
            "conv2 takes 60% of the step with only 20% of the arithmetic",
        ),
        (
            [group("head", 6, 6), group("body", 4, 4)],
            "head takes 60% of the step",
        ),
        (
            [group("head", 6, 9), group("body", 4, 1)],
            "head takes 60% of the step with 90% of the arithmetic",
        ),
        ([], "Where the time goes by layer is not known"),
    ],
)
def test_the_layers_that_take_most_make_the_heading(groups: list[LayerGroup], heading: str) -> None:
    assert step_sentences.layers(groups).heading == heading
