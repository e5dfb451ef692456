"""Small real images for the standard tasks, from wherever this machine has them.

In this order: Fashion-MNIST of Debian's ``dataset-fashion-mnist``, Fashion-MNIST in the cache of
Keras, or downloaded into it by Keras, and the digits that come with scikit-learn. Fashion-MNIST
has its own split; the digits are split 4 : 1. Neither split depends on the seed of a run.
"""

from __future__ import annotations

import contextlib
import gzip
import math
import os
import socket
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[Any]

SIZE = 28
"""Pixels of a side of every image; the digits are enlarged to it."""
CLASSES = 10
DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
SPLIT_SEED = 20200523
CONNECT_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Images ``uint8[count, 28, 28]`` and classes ``int32[count]`` from 0 to 9."""

    images: Array
    labels: Array

    def first(self, count: int) -> Part:
        """Return the first ``count`` of them."""
        return Part(images=self.images[:count], labels=self.labels[:count])


@dataclass(frozen=True, slots=True, kw_only=True)
class RealData:
    """A data set under its own name; no image is in both parts."""

    name: str
    train: Part
    evaluation: Part


def load(images: int = 0) -> RealData:
    """Return the first data set that is found here, in an order that never changes.

    Args:
        images: At most so many for training and a quarter of that for evaluation; 0: all.

    Raises:
        UsageError: There is none, or its files are damaged.
    """
    found = _fashion_mnist() or _digits()
    if found is None:
        raise UsageError(
            "no real data set was found on this machine",
            why="neither Fashion-MNIST nor scikit-learn is installed and none can be downloaded",
            remedy="'apt install dataset-fashion-mnist' or 'pip install scikit-learn'",
        )
    name, train, evaluation = found
    return RealData(
        name=name,
        train=_mixed(train).first(images or len(train.labels)),
        evaluation=_mixed(evaluation).first(-(-images // 4) or len(evaluation.labels)),
    )


def _fashion_mnist() -> tuple[str, Part, Part] | None:
    name = "Fashion-MNIST"
    for folder in (DEBIAN_FOLDER, _keras_folder()):
        if (folder / "train-images-idx3-ubyte.gz").is_file():
            return name, read_idx(folder, "train"), read_idx(folder, "t10k")
    downloaded = _download()
    return None if downloaded is None else (name, *downloaded)


def _keras_folder() -> Path:
    home = os.environ.get("KERAS_HOME")
    return (Path(home) if home else Path.home() / ".keras") / "datasets" / "fashion-mnist"


def _download() -> tuple[Part, Part] | None:
    """Download by Keras into its cache; None where there is no network."""
    import keras

    with _limited_connections(), contextlib.suppress(Exception):
        train, evaluation = keras.datasets.fashion_mnist.load_data()
        return _part(*train), _part(*evaluation)
    return None


@contextlib.contextmanager
def _limited_connections() -> Iterator[None]:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(CONNECT_LIMIT_S)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _digits() -> tuple[str, Part, Part] | None:
    """Load 1,797 digits of 8 × 8 pixels from 0 to 16, enlarged."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        return None
    digits = load_digits()
    rows = np.arange(SIZE) * 8 // SIZE
    images = (digits.images * 255 / 16).astype(np.uint8)[:, rows][:, :, rows]
    everything = _mixed(_part(images, digits.target))
    train = len(images) * 4 // 5
    rest = Part(images=everything.images[train:], labels=everything.labels[train:])
    return "scikit-learn digits", everything.first(train), rest


def read_idx(folder: Path, part: str) -> Part:
    """Read ``train`` or ``t10k`` of a folder with the four files of MNIST and its likes.

    Raises:
        UsageError: A file is missing or damaged.
    """
    images = _read_array(folder / f"{part}-images-idx3-ubyte.gz")
    labels = _read_array(folder / f"{part}-labels-idx1-ubyte.gz")
    if images.shape != (len(labels), SIZE, SIZE):
        raise _damaged(folder, f"{part} has {images.shape} pixels and {len(labels)} labels")
    return _part(images, labels)


def _read_array(path: Path) -> Array:
    """Return an idx file: two zeros, type (8: bytes), rank, sizes as big-endian integers, values.

    The format is described at yann.lecun.com/exdb/mnist.
    """
    try:
        data = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(path, str(error)) from None
    rank = data[3] if data[:3] == b"\0\0\x08" and len(data) > 3 else 0
    start = 4 + 4 * rank
    sizes = [int.from_bytes(data[i : i + 4], "big") for i in range(4, start, 4)]
    if not rank or len(data) != start + math.prod(sizes) or len(data) < start + 1:
        raise _damaged(path, "its header does not fit its length")
    return np.frombuffer(data, np.uint8, offset=start).reshape(sizes)


def _damaged(path: Path, why: str) -> UsageError:
    return UsageError(f"{path} cannot be read", why=why, remedy="install the data set again")


def _part(images: Array, labels: Array) -> Part:
    return Part(images=images, labels=labels.astype(np.int32))


def _mixed(part: Part) -> Part:
    """Mix in an order that is always the same, so that any first images hold all classes."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(part.labels))
    return Part(images=part.images[order], labels=part.labels[order])
