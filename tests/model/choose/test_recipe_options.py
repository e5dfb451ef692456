"""model/recipe_options: batches split evenly; a change that does not clearly pay is not made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choices import option

from tfdyno.model.choose.recipe_options import most_sharing, preferred, splits, suited_precision


@pytest.mark.parametrize(
    ("capability", "precision"),
    [(6.1, "float32"), (7.0, "mixed_float16"), (7.5, "mixed_float16"), (8.0, "mixed_bfloat16"),
     (12.0, "mixed_bfloat16")],
)  # fmt: skip
def test_a_card_is_given_what_its_tensor_cores_are_made_for(
    capability: float, precision: str
) -> None:
    assert suited_precision(capability, first_float16=7.0, first_bfloat16=8.0) == precision


@given(batch_size=st.integers(1, 5000), most=st.integers(1, 5000))
def test_a_split_batch_keeps_its_samples(batch_size: int, most: int) -> None:
    found = splits(batch_size, most)
    assert all(size * count == batch_size and size <= most for size, count in found)
    sizes = [size for size, _ in found]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    if batch_size <= most:
        assert found[0] == (batch_size, 1)


def test_the_fewest_parts_come_first() -> None:
    assert splits(96, 40) == ((32, 3), (24, 4), (16, 6), (12, 8), (8, 12), (6, 16), (4, 24),
                              (3, 32), (2, 48), (1, 96))  # fmt: skip
    assert splits(7, 6) == ((1, 7),)


@given(batch_size=st.integers(1, 2000), cards=st.integers(1, 16))
def test_as_many_cards_as_can_share_equally(batch_size: int, cards: int) -> None:
    found = most_sharing(batch_size, cards)
    assert batch_size % found == 0
    assert all(batch_size % n for n in range(found + 1, cards + 1))


def test_the_fastest_wins_where_it_is_clearly_faster() -> None:
    own, changed = option(10.0), option(9.4, changes=1)
    assert preferred((own, changed), 0.05) == changed
    assert preferred((own, option(9.6, changes=1)), 0.05) == own
    assert preferred((own, option(9.4, changes=2)), 0.05) == own


def test_what_does_not_fit_is_not_taken() -> None:
    slow, fast = option(30.0, changes=2), option(10.0, gibibytes=3.0)
    assert preferred((fast, slow), 0.05) == slow
    assert preferred((fast,), 0.05) is None
