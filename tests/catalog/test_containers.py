"""Images as public sources tell of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog import containers, releases, software
from tfdyno.catalog.containers import container_images
from tfdyno.core.base.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

IMAGES = {one.tensorflow: one for one in container_images()}


def test_every_release_that_is_traced_has_a_row() -> None:
    known = [r.tensorflow for r in releases.all_releases()]
    assert list(IMAGES) == known[known.index(software.OLDEST) :]
    assert list(IMAGES)[-1] == software.NEWEST


def test_an_image_is_pinned_to_the_version_inside() -> None:
    for image in IMAGES.values():
        assert image.image == f"tensorflow/tensorflow:{image.version}-gpu"
        assert image.version.startswith(f"{image.tensorflow}.")
        assert re.fullmatch(r"(sha256:[0-9a-f]{64})?", image.digest)


def test_an_image_with_an_older_cudnn_than_tensorflow_needs_says_what_to_add() -> None:
    """tensorflow/build issue 221: libcudnn8 8.9.6 in the images, TensorFlow 2.18 wants 9.3."""
    for image in IMAGES.values():
        release = releases.release_of(image.version)
        assert release
        too_old = int(image.cudnn.split(".")[0]) < int(release.cudnn.split(".")[0])
        assert (image.requirement == "tensorflow[and-cuda]") == too_old
    assert IMAGES["2.18"].requirement
    assert not IMAGES["2.17"].requirement


def test_tfdyno_is_kept_apart_where_numpy_2_would_break_tensorflow() -> None:
    for image in IMAGES.values():
        release = releases.release_of(image.version)
        assert release
        refuses_numpy_2 = "<2.0.0" in release.numpy_limit or "2.14" in image.tensorflow
        expected = "no" if image.python == "3.8" else "apart" if refuses_numpy_2 else "beside"
        assert image.tfdyno == expected


def test_a_row_with_another_use_names_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = ",".join(containers.COLUMNS)
    (tmp_path / "containers.csv").write_text(f"{header}\n2.21,2.21.0,a,3.11,,,,never,,,x\n")
    monkeypatch.setattr(containers, "DATA", tmp_path)
    container_images.cache_clear()
    with pytest.raises(ToolError, match=r"containers.csv, line 2: tfdyno is 'never'"):
        container_images()
    container_images.cache_clear()
