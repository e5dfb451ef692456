"""Attention of Keras on JAX as cards have it: fused where they can, and then without scores."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.tf
SEEN = Path(__file__).parent / "attention_seen.py"
TOKENS, HEADS, WIDTH, BATCH = 256, 8, 64, 37
SCORES = BATCH * HEADS * TOKENS * TOKENS * 2
"""Bytes of one layer's scores in 16 bits."""


@pytest.fixture(autouse=True, scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with contextlib.chdir(tmp_path_factory.mktemp("seen")):
        yield


@cache
def seen() -> dict[str, Any]:
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, str(SEEN)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_card_before_ampere_computes_every_score() -> None:
    assert seen()["half"]["7.5"] == [0, True]
    assert seen()["half"]["8.0"] == [2, True]


def test_in_32_bits_and_with_dropout_no_card_fuses_it() -> None:
    assert seen()["single"]["9.0"] == [0, False]
    assert seen()["dropout"]["9.0"] == [0, False]


def test_wider_heads_are_fused_from_hopper_on_only() -> None:
    assert (seen()["wide"]["8.0"], seen()["wide"]["9.0"]) == ([0, True], [2, True])
    assert seen()["wide"]["programs"] == ["wide_attention"]
    assert seen()["half"]["programs"] == ["fused_attention"]


def test_each_layer_is_one_kernel_forward_and_one_backward() -> None:
    kernels = seen()["half"]["kernels"]
    assert sorted(kernels) == [[2, 0], [2, 1], [5, 0], [5, 1]]


def test_a_fused_step_holds_no_scores() -> None:
    plain, fused = seen()["half"]["temporary"], seen()["half"]["fused_temporary"]
    assert plain - fused > 2 * SCORES


def test_what_is_told_of_the_card_ends_with_the_trace() -> None:
    assert seen()["devices"] == "cpu"


def test_a_jax_that_asks_otherwise_is_left_alone() -> None:
    assert seen()["other"] == [0, False]
