"""model/serving/text_server: cards and requests of a language model, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.language_models import LLAMA_8B

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import GIB
from tfdyno.model.serving.text_server import (
    UTILIZATION_RATIO,
    cache_bytes_per_token,
    choose_cards,
    divides,
    held_requests,
    left_for_cache,
    weights_bytes,
    working_bytes,
)

GEMMA_2B = replace(LLAMA_8B, layers=18, heads=8, kv_heads=1, head_size=256)


def test_a_token_has_a_key_and_a_value_in_every_layer() -> None:
    """2 * 32 layers * 8 heads * 128 numbers of 2 bytes."""
    assert cache_bytes_per_token(LLAMA_8B, "bfloat16", 1) == 131_072
    assert cache_bytes_per_token(LLAMA_8B, "float32", 1) == 2 * 131_072
    assert cache_bytes_per_token(LLAMA_8B, "float8", 1) == 131_072


@pytest.mark.parametrize(
    ("layers", "kv_heads", "gib", "tokens"),
    [(28, 2, 0.56, 20_992), (32, 8, 19.92, 163_168)],
)
def test_vllm_finds_room_for_as_many_tokens(
    layers: int, kv_heads: int, gib: float, tokens: int
) -> None:
    """As its own logs tell (Qwen2.5-1.5B; Llama 8B on an A100 of 40 GB); GiB have two digits."""
    model = replace(LLAMA_8B, layers=layers, kv_heads=kv_heads)
    room = gib * GIB / cache_bytes_per_token(model, "bfloat16", 1)
    assert room == pytest.approx(tokens, rel=0.006 / gib + 1e-3)


def test_cards_share_the_heads_and_each_has_one_at_least() -> None:
    assert cache_bytes_per_token(LLAMA_8B, "bfloat16", 4) == 131_072 / 4
    assert [cache_bytes_per_token(GEMMA_2B, "bfloat16", cards) for cards in (1, 4)] == [18_432] * 2


def test_in_float8_the_two_tables_of_words_stay_in_two_bytes() -> None:
    table = 128_256 * 4096
    assert weights_bytes(LLAMA_8B, "bfloat16", 2) == 8_030_261_248
    assert weights_bytes(LLAMA_8B, "float8", 1) == 8_030_261_248 + 2 * table
    assert weights_bytes(replace(LLAMA_8B, is_tied=True), "float8", 1) == 8_030_261_248 + table


def test_requests_take_whole_blocks_of_16_tokens() -> None:
    """16,000 bytes are 100 blocks of 160; 33 tokens take three."""
    assert held_requests(16_000, 10, 33) == 33
    assert held_requests(16_000, 10, 1600) == 1
    assert held_requests(16_000, 10, 1601) == 0
    assert held_requests(-5.0, 10, 1) == 0


def test_what_is_left_is_the_share_of_the_card_less_weights_and_work() -> None:
    left = left_for_cache(LLAMA_8B, "bfloat16", 1, 256, 24 * GIB)
    work = working_bytes(LLAMA_8B, "bfloat16", 1, 256)
    assert left.low == 24 * GIB * UTILIZATION_RATIO - 2 * 8_030_261_248 - work.high
    assert left.high == 24 * GIB * UTILIZATION_RATIO - 2 * 8_030_261_248 - work.low
    assert work.high > 2.5 * GIB


def test_the_fewest_cards_that_hold_it_are_taken() -> None:
    assert (
        choose_cards(LLAMA_8B, "bfloat16", "L4", 24 * GIB, tokens=2500, most_requests=256)[0] == 1
    )
    cards, held = choose_cards(LLAMA_8B, "bfloat16", "T4", 16 * GIB, tokens=2500, most_requests=256)
    assert cards == 2
    left = left_for_cache(LLAMA_8B, "bfloat16", 2, 256, 16 * GIB).low
    assert held == int(left // (65_536 * 16)) // 157  # 2,500 tokens are 157 blocks


def test_no_more_requests_than_asked_for() -> None:
    asked = choose_cards(LLAMA_8B, "bfloat16", "x", 80 * GIB, tokens=100, most_requests=7)
    assert asked == (1, 7)


@given(tokens=st.integers(1, 8000), memory=st.integers(20, 80))
def test_longer_requests_are_never_more(tokens: int, memory: int) -> None:
    def held(length: int) -> tuple[int, int]:
        cards, requests = choose_cards(LLAMA_8B, "bfloat16", "x", memory * GIB, tokens=length,
                                       most_requests=256)  # fmt: skip
        return cards, -requests

    assert held(tokens) <= held(tokens + 100)


def test_what_no_number_of_cards_holds_is_told_with_what_is_missing() -> None:
    with pytest.raises(UsageError, match=r"8 x do not hold llama: each needs .* and gives 1\.8"):
        choose_cards(LLAMA_8B, "bfloat16", "x", 2 * GIB, tokens=100, most_requests=256)
    with pytest.raises(UsageError, match="one x does not hold llama"):
        choose_cards(LLAMA_8B, "bfloat16", "x", 8 * GIB, tokens=9, most_requests=1, asked=1)


def test_cards_that_cannot_share_the_heads_are_refused() -> None:
    gpt2 = replace(LLAMA_8B, heads=12, kv_heads=12)
    assert [divides(gpt2, cards) for cards in (1, 2, 4, 8)] == [True, True, True, False]
    with pytest.raises(UsageError, match=r"it has 12 heads.*give --gpus 1 or 2 or 4"):
        choose_cards(gpt2, "bfloat16", "x", 80 * GIB, tokens=9, most_requests=1, asked=8)
