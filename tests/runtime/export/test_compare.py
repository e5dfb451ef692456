"""runtime/export_compare: differences, classes and accuracy by numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.runtime.export.compare import Comparing, Judge, classes, filled


def test_differences_are_of_all_batches_together() -> None:
    side = Comparing("a")
    side.add(np.array([[1.0, 0.0]]), np.array([[1.0, 0.5]]))
    side.add(np.array([[0.0, 4.0]]), np.array([[1.0, 4.0]]))
    found = side.found()
    assert (found.max_abs, found.mean_abs, found.largest_abs) == (1.0, 1.5 / 4, 4.0)
    assert found.max_relative_ratio == 0.25
    assert found.top1_ratio == 1.0
    assert found.varies


def test_no_number_equals_itself_and_differs_from_any_number() -> None:
    side = Comparing("a")
    side.add(np.array([[np.nan, np.inf]]), np.array([[np.nan, np.inf]]))
    assert side.found().max_abs == 0.0
    assert side.found().not_finite_ratio == 1.0
    side.add(np.array([[np.nan, 1.0]]), np.array([[0.0, 1.0]]))
    assert side.found().max_abs == np.inf


def test_rows_without_a_class_count_neither_as_right_nor_as_the_same() -> None:
    """NaN compares as the first class on both sides: 34 % right, where nothing was compared."""
    nothing = {"a": np.full((3, 2), np.nan)}
    judge = Judge(("a",), "a", [0, 0, 1])
    judge.add(0, nothing, nothing)
    assert judge.accuracy() is None
    assert judge.differences()[0].top1_ratio is None
    judge = Judge(("a",), "a", [0, 0, 1])
    before = np.array([[np.nan, 0.0], [-np.inf, 2.0], [0.0, 1.0]])  # the second rules class 0 out
    judge.add(0, {"a": before}, {"a": np.array([[0.0, 0.0], [0.0, 1.0], [np.nan, 1.0]])})
    found = judge.accuracy()
    assert found is not None
    assert (found.rows, found.before_ratio, found.after_ratio) == (2, 0.5, 0.0)
    assert judge.differences()[0].top1_ratio == 0.5


def test_an_output_without_values_is_not_called_nan() -> None:
    side = Comparing("boxes")
    side.add(np.zeros((0, 4)), np.zeros((0, 4)))
    assert side.found().not_finite_ratio == 0.0


def test_classes_that_lead_by_less_than_four_steps_of_8_bits_are_ties() -> None:
    side = Comparing("a")
    before = np.array([[0.50, 0.49], [0.6, 0.4], [0.1, 0.9], [100.0, 99.0]])
    side.add(before, before[:, ::-1])
    assert (side.found().top1_ratio, side.found().clear_top1_ratio) == (0.0, 0.0)
    side.add(np.array([[0.9, 0.1]]), np.array([[0.6, 0.4]]))
    assert (side.found().top1_ratio, side.found().clear_top1_ratio) == (0.2, 1 / 3)
    side = Comparing("a")
    side.add(np.array([[0.50, 0.49]]), np.array([[0.49, 0.50]]))
    assert side.found().clear_top1_ratio is None
    side = Comparing("a", known=True)  # of a single score
    side.add(np.array([[0.51], [0.7]]), np.array([[0.49], [0.7]]))
    assert (side.found().top1_ratio, side.found().clear_top1_ratio) == (0.5, 1.0)


def test_a_fixed_batch_is_filled_up_and_the_surplus_left_out() -> None:
    seen = []

    def run(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        seen.append(inputs["x"].tolist())
        return {"y": inputs["x"] * 2, "count": np.array(4)}

    found = filled(run, 4)({"x": np.array([1, 2, 3])})
    assert seen == [[1, 2, 3, 3]]
    assert (found["y"].tolist(), found["count"].tolist()) == ([2, 4, 6], 4)
    assert filled(run, 4)({"x": np.arange(4)})["y"].tolist() == [0, 2, 4, 6]


def test_another_shape_is_a_failure_of_the_converter() -> None:
    with pytest.raises(ToolError, match=r"another shape for a: \(1, 3\) in place of \(1, 2\)"):
        Comparing("a").add(np.zeros((1, 2)), np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([[0.1, 0.9], [0.6, 0.4]], [1, 0]),
        ([[0.2], [0.7]], [0, 1]),  # probabilities
    ],
)
def test_scores_name_a_class(scores: list[list[float]], expected: list[int]) -> None:
    assert classes(np.array(scores)).tolist() == expected


def test_single_scores_are_logits_in_every_batch_where_one_of_the_model_is() -> None:
    """The last batch alone looks like probabilities, and the export's rounding says nothing."""
    judge = Judge(("a",), "a", [0, 1, 1])
    judge.add(0, {"a": np.array([[-2.0], [0.3]])}, {"a": np.array([[0.0], [0.3]])})
    judge.add(2, {"a": np.array([[0.3]])}, {"a": np.array([[0.3]])})
    found = judge.accuracy()
    assert found is not None
    assert (found.before_ratio, found.after_ratio) == (1.0, 1.0)
    assert judge.differences()[0].top1_ratio == 1.0


def test_probabilities_of_the_model_stay_probabilities_where_the_export_leaves_0_to_1() -> None:
    judge = Judge(("a",), "a", [0, 1])
    judge.add(0, {"a": np.array([[0.0], [0.7]])}, {"a": np.array([[-0.01], [0.7]])})
    judge.add(2, {"a": np.zeros((0, 1))}, {"a": np.zeros((0, 1))})
    found = judge.accuracy()
    assert found is not None
    assert (found.before_ratio, found.after_ratio) == (1.0, 1.0)


def test_accuracy_is_the_share_of_right_rows_on_both_sides() -> None:
    judge = Judge(("a",), "a", [0, 1, 1])
    judge.add(0, {"a": np.eye(2)[[0, 1]]}, {"a": np.eye(2)[[0, 0]]})
    judge.add(2, {"a": np.eye(2)[[0]]}, {"a": np.eye(2)[[0]]})
    found = judge.accuracy()
    assert found is not None
    assert (found.rows, found.before_ratio, found.after_ratio) == (3, 2 / 3, 1 / 3)
    assert found.commonest_ratio == 2 / 3
    assert found.drop_ratio == pytest.approx(1 / 3)


def test_classes_as_whole_numbers_are_judged_as_they_are() -> None:
    judge = Judge(("a",), "a", [7, 3])
    judge.add(0, {"a": np.array([7, 3])}, {"a": np.array([7, 4])})
    [found] = judge.differences()
    assert found.top1_ratio == 0.5
    assert judge.accuracy() is not None


@pytest.mark.parametrize(
    ("row", "known", "expected"),
    [
        ([0.2, 0.8], False, 1.0),
        ([3.7], False, None),  # a price, or one of two classes: nothing says which
        ([0.7], True, 1.0),
        (3.7, False, None),
        (3, False, None),  # a count
        (3, True, 1.0),
    ],
)
def test_the_same_class_is_stated_only_of_an_output_that_names_classes(
    row: object, known: bool, expected: float | None
) -> None:
    batch = {"a": np.array([row])}
    judge = Judge(("a",), "a" if known else "", [0] if known else None)
    judge.add(0, batch, batch)
    assert judge.differences()[0].top1_ratio == expected


def test_an_output_with_targets_that_are_amounts_names_no_class() -> None:
    judge = Judge(("a", "b"), amounts=("a",))
    batch = {"a": np.ones((1, 3)), "b": np.ones((1, 3))}
    judge.add(0, batch, batch)
    assert [one.top1_ratio for one in judge.differences()] == [None, 1.0]


def test_texts_are_equal_or_not() -> None:
    side = Comparing("a")
    side.add(np.array([b"yes", b"no"], object), np.array(["yes", "not"], object))
    assert side.found().max_abs == 1.0


def test_other_names_are_a_failure() -> None:
    with pytest.raises(ToolError, match="other outputs: b in place of a"):
        Judge(("a",)).add(0, {"a": 1}, {"b": 1})
