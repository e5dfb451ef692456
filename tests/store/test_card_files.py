from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.swept import card_file, loop

from tfdyno.core.base.errors import UsageError
from tfdyno.store.card_files import CardFiles, read_card_file

if TYPE_CHECKING:
    from pathlib import Path

CARD = card_file(loop(4096, 1e-6))


def test_a_newer_sweep_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    files = CardFiles(folder=tmp_path / "data")
    files.write(CARD)
    newer = card_file(loop(4096, 2e-6), made_on="2026-12-01")
    files.write(newer)
    files.write(card_file(loop(1, 1e-6), card="a100-sxm4-80gb:3g.40gb"))
    found, problems = files.read()
    assert {one.card for one in found} == {"cpu", "a100-sxm4-80gb:3g.40gb"}
    assert newer in found
    assert problems == ()


def test_what_did_not_end_is_kept_and_not_read(tmp_path: Path) -> None:
    files = CardFiles(folder=tmp_path)
    path = files.write(CARD, finished=False)
    assert path.exists()
    assert files.read() == ((), ())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 99}, "another tfdyno"),
        ({"kernels": []}, "holds no kernel"),
        ({"surprise": 1}, "surprise"),
        ({"sweep_s": "long"}, "sweep_s"),
    ],
)
def test_a_damaged_file_is_told_and_the_others_serve(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    files = CardFiles(folder=tmp_path)
    path = files.write(CARD)
    good = card_file(loop(1, 1e-6), card="t4")
    files.write(good)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    found, (problem,) = files.read()
    assert found == (good,)
    assert words in problem
    assert str(path) in problem


def test_half_a_file_and_impossible_times_are_refused(tmp_path: Path) -> None:
    path = CardFiles(folder=tmp_path).write(CARD)
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match="not valid JSON"):
        read_card_file(path)
    path.write_text(whole.replace('"kernel_s":1e-6', '"kernel_s":-1.0'))
    with pytest.raises(UsageError, match="no possible time"):
        read_card_file(path)
