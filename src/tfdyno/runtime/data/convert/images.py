"""Images as records: as they are encoded, or resized once and for all; each is decoded to see."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import first_line

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.messages.data import ShardPlan

Bad = Callable[[str, str], None]
"""Told of an image that cannot be read, and why."""
MOST_THREADS = 32
_AHEAD = 2
"""Images that are read ahead, per thread."""


class DamagedError(Exception):
    """An image that TensorFlow does not read; the text says why."""


class Images:
    """Images of a folder, read and looked at by several threads, in order."""

    def __init__(self, source: Path, *, image_size: tuple[int, int] | None) -> None:
        """Take the folder and the size to resize to; None: images stay as they are."""
        self.source, self.image_size = source, image_size
        self.threads = min(MOST_THREADS, 2 * (os.cpu_count() or 1))

    def records(self, shard: ShardPlan, bad: Bad) -> Iterator[bytes]:
        """Read a shard's records; ``bad`` hears of what cannot be read, which is left out.

        Raises:
            UsageError: An image has changed since it was listed.
        """
        waiting: deque[tuple[str, int, Future[bytes]]] = deque()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                for path, label, size_bytes in shard.images:
                    waiting.append((path, label, pool.submit(self._image, path, size_bytes)))
                    if len(waiting) >= _AHEAD * self.threads:
                        yield from _record(*waiting.popleft(), bad)
                while waiting:
                    yield from _record(*waiting.popleft(), bad)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _image(self, path: str, size_bytes: int) -> bytes:
        """Return the bytes that are stored of one image."""
        try:
            content = (self.source / path).read_bytes()
        except OSError as error:
            raise DamagedError(error.strerror or str(error)) from None
        if len(content) != size_bytes:
            raise UsageError(
                f"{self.source / path} has changed while it was converted",
                why=f"it has {len(content):,} bytes instead of {size_bytes:,}",
                remedy="convert into a new folder when nothing writes to the source",
            )
        try:
            return stored(content, self.image_size)
        except tf.errors.OpError as error:
            raise DamagedError(_reason(error)) from None


def stored(content: bytes, image_size: tuple[int, int] | None) -> bytes:
    """Return what is kept of an image that ``keras.utils.image_dataset_from_directory`` can read.

    Args:
        content: The file.
        image_size: Height and width; None: the file as it is.

    Returns:
        The file, or uint8 values ``(height, width, 3)`` row by row: Keras' bilinear resizing,
        rounded to whole numbers.

    Raises:
        tf.errors.OpError: It is damaged, or no image.
    """
    image = tf.io.decode_image(content, channels=3, expand_animations=False)
    if image_size is None:
        return content
    resized = tf.image.resize(image, image_size)
    return bytes(tf.cast(tf.round(resized), tf.uint8).numpy().tobytes())


def _record(path: str, label: int, image: Future[bytes], bad: Bad) -> Iterator[bytes]:
    try:
        content = image.result()
    except DamagedError as error:
        bad(path, str(error))
        return
    feature = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[content])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        "path": tf.train.Feature(bytes_list=tf.train.BytesList(value=[os.fsencode(path)])),
    }
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    yield example.SerializeToString(deterministic=True)


def _reason(error: tf.errors.OpError) -> str:
    """Return TensorFlow's words without the place in its graph."""
    text = first_line(error).partition("}} ")[2] or first_line(error)
    return text.partition(" [Op:")[0].removesuffix(".")
