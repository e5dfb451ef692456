"""A missing path ends in one sentence, with the name that was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.probe.base.near import no_such

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("tran.log", "there is no file {0}/tran.log; did you mean {0}/train.log?"),
        ("xyzzy", "there is no file {0}/xyzzy; check the path."),
        ("none/train.log", "there is no file {0}/none/train.log: there is no folder {0}/none."),
    ],
)
def test_the_nearest_name_beside_it_is_proposed(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "train.log").touch()
    (tmp_path / "data").mkdir()
    error = no_such(tmp_path / name)
    assert str(error) == sentence.format(tmp_path)
    assert error.exit_code == 2


def test_what_was_looked_for_is_named(tmp_path: Path) -> None:
    assert str(no_such(tmp_path / "x", what="folder")).startswith("there is no folder ")
