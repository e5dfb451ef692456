"""Sizes that a batch leaves open: whose fill them, and what is asked where none does."""

from __future__ import annotations

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.workload.dataspec import Leaf
from tfdyno.runtime.workload.open_sizes import is_open, refuse_open, with_declared, with_given


def leaf(*shape: int | None, name: str = "") -> Leaf:
    return Leaf(shape=shape, dtype="float32", name=name)


SERIES, OTHER = leaf(None, 7, name="series"), leaf(None, 3, name="other")


def test_a_size_that_is_not_known_is_open() -> None:
    assert is_open([leaf(2), {"a": leaf(None, 2)}])
    assert not is_open((leaf(2), None))


@pytest.mark.parametrize(
    ("own", "declared", "expected"),
    [
        (leaf(None, 7), leaf(50, 7), (50, 7)),
        (leaf(None), leaf(50, 1), (50,)),  # Keras adds the axis
        (leaf(None, 1), leaf(50), (50, 1)),  # Keras takes it away
        (leaf(None, 7), leaf(50, 6), (None, 7)),
        (leaf(None, None), leaf(None, 7), (None, 7)),
    ],
)
def test_what_a_model_declares_fills_what_fits_it(
    own: Leaf, declared: Leaf, expected: tuple[int | None, ...]
) -> None:
    assert with_declared(own, declared).shape == expected


def test_the_entries_of_a_dict_are_found_by_the_names_of_the_inputs() -> None:
    data = {"past": leaf(None, 5), "extra": leaf(None, 5), "more": leaf(None)}
    declared = [leaf(9, 5, name="extra"), leaf(24, 5, name="past")]
    found = with_declared(data, declared)
    assert found == {"past": leaf(24, 5), "extra": leaf(9, 5), "more": leaf(None)}
    assert with_declared(data, {"past": leaf(8, 5)})["past"] == leaf(8, 5)


def test_other_structures_are_filled_by_their_order() -> None:
    data = (leaf(None, 5), [leaf(None, 2)])
    assert with_declared(data, [leaf(3, 5), leaf(4, 2)]) == (leaf(3, 5), [leaf(4, 2)])
    assert with_declared(data, leaf(3, 5)) == data
    assert with_declared(None, leaf(3, 5)) is None


@pytest.mark.parametrize(
    ("own", "given", "expected"),
    [
        ([SERIES, OTHER], [(50, 7), (20, 3)], [(50, 7), (20, 3)]),
        ([SERIES, OTHER], [(20, 3), (50, 7)], [(50, 7), (20, 3)]),
        ([SERIES, OTHER], [(20, 3)], [(None, 7), (20, 3)]),
        ([leaf(5), OTHER], [(5,), (20, 3)], [(5,), (20, 3)]),
        ([leaf(5), OTHER], [(20, 3), (5,)], [(5,), (20, 3)]),
        ([leaf(5), OTHER], [(20, 3)], [(5,), (20, 3)]),
        ([leaf(4, 3), OTHER], [(4, 3)], [(4, 3), (4, 3)]),
        # Only one order fits both: the first shape is not for the first input.
        ([leaf(None, None), SERIES], [(9, 7), (9, 2)], [(9, 2), (9, 7)]),
        ([leaf(5)], [], [(5,)]),
    ],
)
def test_given_shapes_are_for_each_input_or_for_the_open_ones(
    own: list[Leaf], given: list[tuple[int, ...]], expected: list[tuple[int | None, ...]]
) -> None:
    assert [one.shape for one in with_given(own, given)] == expected


def test_a_shape_that_no_input_takes_is_told_with_all_of_them() -> None:
    with pytest.raises(UsageError) as told:
        with_given([leaf(5, name="flat"), OTHER], [(20, 4)])
    assert told.value.what == "--input-shape 20,4 fits no input, or one that has a shape already"
    assert told.value.why == "the inputs are flat (5,), other (None, 3) without the batch"
    assert told.value.remedy.endswith("--input-shape 5 --input-shape 128,3")


def test_what_is_still_open_is_asked_for_beside_what_was_given() -> None:
    with pytest.raises(UsageError) as told:
        refuse_open([leaf(50, 7, name="series"), OTHER], [(50, 7)])
    assert told.value.what == "the input other has the shape (None, 3) without the batch"
    assert told.value.remedy.endswith("--input-shape 50,7 --input-shape 128,3")
    refuse_open([leaf(50, 7)], [])
