"""Real images: files read as they are written, split without overlap, the same on every run."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.workload import real_data

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, part: str, count: int) -> None:
    """``count`` images, of which number i is grey i everywhere and of class i % 10."""
    images = bytes(pixel for i in range(count) for pixel in [i] * 28 * 28)
    size = count.to_bytes(4, "big")
    side = (28).to_bytes(4, "big")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(
        gzip.compress(b"\0\0\x08\x03" + size + side + side + images)
    )
    labels = b"\0\0\x08\x01" + size + bytes(i % 10 for i in range(count))
    (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data set in any folder, and no network."""
    monkeypatch.setattr(real_data, "DEBIAN_FOLDER", tmp_path / "debian")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.setattr(real_data, "_download", lambda: None)


def test_an_idx_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, "train", 12)
    part = real_data.read_idx(tmp_path, "train")
    assert part.images.shape == (12, 28, 28)
    assert part.images[:, 3, 5].tolist() == list(range(12))
    assert part.labels.tolist() == [*range(10), 0, 1]
    assert [str(a.dtype) for a in (part.images, part.labels)] == ["uint8", "int32"]


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data[:-30], "cannot be read"),
        (lambda data: b"no gzip" + data, "cannot be read"),
        (lambda data: gzip.compress(gzip.decompress(data)[:-1]), "its header does not fit"),
        (lambda data: gzip.compress(b"\1" + gzip.decompress(data)[1:]), "its header does not fit"),
        (lambda data: gzip.compress(b""), "its header does not fit"),
        (lambda data: gzip.compress(b"\0\0\x08\x03\0\0"), "its header does not fit"),
        (lambda data: b"", "its header does not fit"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, damage: object, why: str) -> None:
    write(tmp_path, "train", 3)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(UsageError) as caught:
        real_data.read_idx(tmp_path, "train")
    assert str(path) in str(caught.value)
    assert why in str(caught.value)


def test_labels_of_another_length_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "train", 3)
    images = (tmp_path / "train-images-idx3-ubyte.gz").read_bytes()
    write(tmp_path, "train", 4)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(images)
    with pytest.raises(UsageError, match="4 labels"):
        real_data.read_idx(tmp_path, "train")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        real_data.read_idx(tmp_path, "train")


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("place", ["debian", "keras/datasets/fashion-mnist"])
def test_fashion_mnist_is_found_in_both_folders(tmp_path: Path, place: str) -> None:
    write(tmp_path / place, "train", 200)
    write(tmp_path / place, "t10k", 50)
    found = real_data.load()
    assert found.name == "Fashion-MNIST"
    assert sorted(found.train.images[:, 0, 0].tolist()) == list(range(200))
    assert len(found.evaluation.labels) == 50
    again = real_data.load(40)
    assert (again.train.images == found.train.images[:40]).all(), "fewer are the first of all"
    assert len(again.evaluation.labels) == 10
    assert (again.train.labels == again.train.images[:, 0, 0] % 10).all(), "each keeps its class"


@pytest.mark.usefixtures("nothing")
def test_asked_for_more_images_than_there_are_it_gives_all(tmp_path: Path) -> None:
    write(tmp_path / "debian", "train", 20)
    write(tmp_path / "debian", "t10k", 5)
    found = real_data.load(30)
    assert (len(found.train.labels), len(found.evaluation.labels)) == (20, 5)


@pytest.mark.usefixtures("nothing")
def test_the_digits_are_split_without_overlap() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    found = real_data.load()
    assert found.name == "scikit-learn digits"
    assert (len(found.train.labels), len(found.evaluation.labels)) == (1437, 360)
    images = np.concatenate([found.train.images, found.evaluation.images])
    whole = sorted(im.tobytes() for im in (datasets.load_digits().images * 255 / 16).astype("u1"))
    rows = [int(np.flatnonzero(np.arange(28) * 8 // 28 == row)[0]) for row in range(8)]
    assert sorted(im[np.ix_(rows, rows)].tobytes() for im in images) == whole
    assert set(found.evaluation.labels.tolist()) == set(range(10))


@pytest.mark.usefixtures("nothing")
def test_without_any_source_the_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(UsageError) as caught:
        real_data.load()
    assert "'apt install dataset-fashion-mnist' or 'pip install scikit-learn'" in str(caught.value)


def test_a_download_that_fails_is_no_error(tmp_path: Path) -> None:
    code = "from tfdyno.runtime.workload import real_data; print('got', real_data._download())"
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "KERAS_HOME": str(tmp_path),
        "https_proxy": "http://127.0.0.1:9",  # where nobody listens
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.splitlines()[-1] == "got None"


@pytest.mark.skipif(
    not real_data.DEBIAN_FOLDER.is_dir(), reason="dataset-fashion-mnist is not installed"
)
def test_the_package_of_debian_holds_fashion_mnist() -> None:
    found = real_data.load()
    assert (len(found.train.labels), len(found.evaluation.labels)) == (60_000, 10_000)
    assert np.bincount(found.train.labels).tolist() == [6000] * 10
    assert np.bincount(found.train.first(1000).labels).min() > 70
    pixels = found.train.images / 255.0
    assert (pixels.mean(), pixels.std()) == pytest.approx((0.2860, 0.3530), abs=5e-5)
