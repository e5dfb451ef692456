from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.time_model import read_time_model, time_model
from tfdyno.core.choose.time_model import BucketWidth
from tfdyno_truth.run import TIME_MODEL
from tfdyno_truth.toml import rewrite

if TYPE_CHECKING:
    from pathlib import Path


WIDTHS = {
    "cnn/train/xla": BucketWidth(log_half_width_ratio=0.5, groups=7),
    "default": BucketWidth(log_half_width_ratio=0.6, groups=30),
}


def test_only_values_widths_and_the_version_change(tmp_path: Path) -> None:
    path = tmp_path / "time_model.toml"
    path.write_text(TIME_MODEL.read_text())
    rewrite(path, version="2030-01-01", values={"e_loop": 0.75}, widths=WIDTHS)
    found = read_time_model(path)
    assert (found.version, found["e_loop"]) == ("2030-01-01", 0.75)
    assert found.intervals == WIDTHS
    changed = {n for n, p in found.parameters.items() if p != time_model().parameters[n]}
    assert changed <= {"e_loop"}


def test_an_unknown_constant_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "time_model.toml"
    path.write_text(TIME_MODEL.read_text())
    with pytest.raises(ValueError, match="0 entries for e_magic"):
        rewrite(path, version="x", values={"e_magic": 1.0}, widths=WIDTHS)
    assert path.read_text() == TIME_MODEL.read_text()
