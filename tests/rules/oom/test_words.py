"""Sentences on what held the memory; each number worked by hand."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.doctor.oom import ChunkSize, LiveBuffer, OomReport
from tfdyno.rules.oom.words import what_held

if TYPE_CHECKING:
    from tfdyno.core.base.language import Language

MIB = 2**20
FULL = OomReport(
    kind="gpu",
    operation="Conv2D",
    shape=(64, 512),
    dtype="float",
    requested_bytes=256 * MIB,
    in_use_bytes=768 * MIB,
    limit_bytes=1024 * MIB,
    pool_bytes=1024 * MIB,
    free_bytes=256 * MIB,
    largest_free_bytes=64 * MIB,
    chunks=(ChunkSize(size_bytes=192 * MIB, count=3), ChunkSize(size_bytes=64 * MIB, count=3)),
    buffers=(LiveBuffer(size_bytes=192 * MIB, name="Adam/m", shape="f32[7]"),),
    peak_bytes=900 * MIB,
)


def test_who_asked_and_what_was_in_use_comes_first() -> None:
    said = what_held(FULL)
    assert said[0] == ("Conv2D asked for 256 MiB (float [64, 512]); 768 MiB of 1 GiB were in use.")
    assert said[-1] == "The largest use before was 900 MiB."


def test_chunks_have_their_share_of_what_was_in_use() -> None:
    # 3 x 192 of 3 x 192 + 3 x 64 is three quarters
    said = what_held(FULL)
    assert "3 × 192 MiB hold 576 MiB (75% of what was in use)." in said
    assert "192 MiB  f32[7] Adam/m" in said


def test_a_limit_far_below_the_card_is_said() -> None:
    far, near = 1024 * MIB * 2, 1024 * MIB * 1.1
    assert "The limit is 1 GiB of the 2 GiB of the card: the rest was taken already." in what_held(
        FULL, card_bytes=far
    )
    assert not any("of the card" in one for one in what_held(FULL, card_bytes=int(near)))


def test_pieces_are_named_only_where_there_is_enough_in_all() -> None:
    # 1,024 - 768 MiB are free: as much as is asked for, but 64 MiB in one piece
    assert "256 MiB were free, but the largest free piece has 64 MiB." in what_held(FULL)
    more = dataclasses.replace(FULL, requested_bytes=257 * MIB)
    assert not any("were free" in one for one in what_held(more))


def test_a_compiled_program_is_set_against_the_device() -> None:
    program = OomReport(program_bytes=3 * MIB, parameter_bytes=2 * MIB, temporary_bytes=MIB)
    assert what_held(program) == (
        "The compiled program needs 3 MiB at once: inputs and weights 2 MiB, temporary 1 MiB.",
    )
    small = dataclasses.replace(program, limit_bytes=2 * MIB)
    assert what_held(small)[0] == "The compiled program needs 3 MiB; the device has 2 MiB."


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_empty_report_says_nothing(language: Language) -> None:
    assert what_held(OomReport(), language=language) == ()


def test_both_languages_say_the_same_number_of_things() -> None:
    chinese = what_held(FULL, card_bytes=2048 * MIB, language="zh")
    assert len(chinese) == len(what_held(FULL, card_bytes=2048 * MIB))
    assert "256 MiB" in chinese[0]
