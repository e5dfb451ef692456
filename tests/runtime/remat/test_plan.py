"""Which parts are recomputed: against every possible choice, and against the rule of the root."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.runtime.remat.plan import (
    ModelOperation,
    Part,
    all_parts,
    blocks,
    cheapest,
    flops,
    peak_bytes,
    segments,
)


def like(count: int, kept: int = 100, passed: int = 10) -> list[Part]:
    return [
        Part(name=f"b{n}", kept_bytes=kept, passed_bytes=passed, forward_flops=1.0)
        for n in range(count)
    ]


def test_the_peak_is_where_the_gradient_of_a_block_is_computed() -> None:
    parts = [Part(kept_bytes=5), *like(3)]
    assert peak_bytes(parts, ()) == 305
    assert peak_bytes(parts, {"b0", "b1", "b2"}) == 5 + 10 + 10 + 100
    assert peak_bytes(parts, {"b2"}) == 305  # its gradient comes at once: nothing is won
    assert peak_bytes(parts, {"b0"}) == 5 + 10 + 100 + 100


@st.composite
def rows(draw: st.DrawFn) -> list[Part]:
    names = st.sampled_from(["", "a", "b", "c", "d", "e"])
    parts = []
    for name in draw(st.lists(names, min_size=1, max_size=7)):
        kept = draw(st.integers(0, 50))
        passed = draw(st.integers(0, kept)) if name else 0
        cost = float(draw(st.integers(0, 9)))
        parts.append(Part(name=name, kept_bytes=kept, passed_bytes=passed, forward_flops=cost))
    return parts


@given(rows(), st.integers(0, 200))
def test_the_choice_meets_the_budget_and_none_is_cheaper(parts: list[Part], budget: int) -> None:
    names = sorted(blocks(parts))
    choices = [c for n in range(len(names) + 1) for c in itertools.combinations(names, n)]
    able = [c for c in choices if peak_bytes(parts, c) <= budget]
    chosen = cheapest(parts, budget)
    if chosen is None:
        assert not able
        return
    assert peak_bytes(parts, chosen) <= budget
    once = len(names) == sum(bool(part.name) for part in parts)
    if once:  # a block that is called twice is chosen as a whole, not always the cheapest way
        assert flops(parts, chosen) == min(flops(parts, c) for c in able)


def chain(count: int, **how: bool) -> list[ModelOperation]:
    return [
        ModelOperation(
            name=f"s{n}",
            reads=(n,),
            makes=((n + 1, 10),),
            kept_bytes=30,
            forward_flops=2.0,
            **how,
        )
        for n in range(count)
    ]


def test_a_chain_is_cut_into_about_the_root_of_its_length() -> None:
    steps = chain(100)
    found = segments(steps, [100])
    assert 8 <= len(found) <= 25
    parts = all_parts(steps, found)
    assert peak_bytes(parts, blocks(parts)) < 3000 / 5
    assert flops(parts, blocks(parts)) == 200.0
    assert [(a.last, b.first) for a, b in itertools.pairwise(found)] == [
        (a.last, a.last) for a in found[:-1]
    ]


@st.composite
def steps_of_a_chain(draw: st.DrawFn) -> list[ModelOperation]:
    found = []
    for n in range(draw(st.integers(1, 8))):
        kept = draw(st.integers(0, 60))
        makes = ((n + 1, draw(st.integers(0, 60))),)
        allowed = draw(st.integers(0, 5)) > 0
        found.append(
            ModelOperation(name=f"s{n}", reads=(n,), makes=makes, kept_bytes=kept, allowed=allowed)
        )
    return found


def every_peak(steps: list[ModelOperation], first: int = 0, held: int = 0) -> list[int]:
    """The peak of every way to cut a chain from an operation on."""
    if first == len(steps):
        return [0]
    found = []
    for last in range(first + 1, len(steps) + 1):
        inside = steps[first:last]
        kept, passed = sum(each.kept_bytes for each in inside), inside[-1].makes[0][1]
        if last == first + 1:
            after = held + kept
            found += [max(after, each) for each in every_peak(steps, last, after)]
        if all(each.allowed for each in inside) and passed < kept:
            rest = every_peak(steps, last, held + passed)
            found += [max(held + kept, each) for each in rest]
    return found


@given(steps_of_a_chain())
def test_no_cut_of_a_chain_has_a_lower_peak(steps: list[ModelOperation]) -> None:
    parts = all_parts(steps, segments(steps, [len(steps)]))
    assert peak_bytes(parts, blocks(parts)) == min(every_peak(steps))


def test_a_chain_that_narrows_is_cut_by_bytes() -> None:
    # Results of 128, 64, 32 and 1: the first two at once are the least that a step can hold.
    sizes = [128, 64, 32, 1]
    steps = [
        ModelOperation(name=f"s{n}", reads=(n,), makes=((n + 1, size),), kept_bytes=size)
        for n, size in enumerate(sizes)
    ]
    found = segments(steps, [4])
    assert (found[0].first, found[0].last) == (0, 2)
    parts = all_parts(steps, found)
    assert peak_bytes(parts, blocks(parts)) == 128 + 64


def test_a_chain_of_which_no_cut_is_worth_it_is_left_alone_unless_it_is_wanted() -> None:
    steps = chain(2)  # all of the second is held at once with what the first gave
    steps = [replace(steps[0], kept_bytes=10), steps[1]]
    assert segments(steps, [2]) == []
    assert [(x.first, x.last) for x in segments(steps, [2], wanted=True)] == [(0, 2)]


def test_cuts_lie_where_one_tensor_passes() -> None:
    # Blocks of two: the second adds what the first read, so two tensors pass inside a block.
    steps = []
    for n in range(0, 40, 2):
        steps.append(ModelOperation(name=f"a{n}", reads=(n,), makes=((n + 1, 10),), kept_bytes=50))
        steps.append(
            ModelOperation(name=f"b{n}", reads=(n, n + 1), makes=((n + 2, 10),), kept_bytes=10)
        )
    found = segments(steps, [40])
    assert len(found) > 2
    assert all(each.first % 2 == 0 and each.last % 2 == 0 for each in found)
    assert {each.part.passed_bytes for each in found} == {10}


def test_what_may_not_be_recomputed_divides_segments() -> None:
    steps = [*chain(4), *chain(1, allowed=False), *chain(4)]
    steps = [
        ModelOperation(
            name=f"s{n}", reads=(n,), makes=((n + 1, 10),), kept_bytes=30, allowed=each.allowed
        )
        for n, each in enumerate(steps)
    ]
    assert all(not each.first <= 4 < each.last for each in segments(steps, [9]))
    assert segments(chain(3, allowed=False), [3]) == []


def test_a_single_operation_that_keeps_what_it_passes_is_left_alone() -> None:
    assert (
        segments([ModelOperation(name="s", reads=(0,), makes=((1, 30),), kept_bytes=30)], [1]) == []
    )


@pytest.mark.parametrize("count", [30, 60])
def test_a_budget_between_recomputes_some_of_many_blocks(count: int) -> None:
    parts = like(count)
    chosen = cheapest(parts, 100 * count / 2)
    assert chosen is not None
    assert 0 < len(chosen) < count
    assert peak_bytes(parts, chosen) <= 100 * count / 2
