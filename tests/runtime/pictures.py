"""Real images and tables to convert, and what converted records hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.runtime.forks import forked

if TYPE_CHECKING:
    from pathlib import Path

MAKE = """
import sys
from pathlib import Path
import numpy as np
import tensorflow as tf

folder, count, side = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
draw = np.random.default_rng(7)
classes = ("ant", "bee", "cat")
for number in range(count):
    rough = draw.integers(0, 256, (4, 4, 3)).astype(np.float32)
    size = (side, side + number % 3)
    smooth = tf.image.resize(rough, size, "bicubic") + draw.normal(0, 3, (*size, 3))
    image = tf.cast(tf.clip_by_value(smooth, 0, 255), tf.uint8)
    place = folder / classes[number % 3]
    place = place / "deeper" if number % 7 == 6 else place
    place.mkdir(parents=True, exist_ok=True)
    if number % 2:
        (place / f"{number:04}.png").write_bytes(tf.io.encode_png(image).numpy())
    else:
        (place / f"{number:04}.JPG").write_bytes(tf.io.encode_jpeg(image).numpy())
"""
RECORDS = """
import json, sys
from pathlib import Path
import tensorflow as tf

folder = Path(sys.argv[1])
manifest = json.loads((folder / "dataset.json").read_text())
compression = {"none": "", "gzip": "GZIP"}[manifest["settings"]["compression"]]
found = []
for shard in manifest["shards"]:
    for record in tf.data.TFRecordDataset(str(folder / shard["file"]), compression):
        example = tf.train.Example.FromString(record.numpy())
        values = {}
        for name, feature in example.features.feature.items():
            kind = feature.WhichOneof("kind")
            (value,) = getattr(feature, kind).value
            values[name] = value.hex() if isinstance(value, bytes) else value
        found.append(values)
print(json.dumps(found))
"""
"""Every record in the order of the shards; bytes as hexadecimal digits."""


def make_pictures(folder: Path, count: int = 24, side: int = 20) -> Path:
    """JPEG and PNG images of three classes, some in folders below; returns the folder."""
    forked(MAKE, str(folder), str(count), str(side))
    return folder


def records(folder: Path) -> list[dict[str, Any]]:
    """All that a data set holds, read by TensorFlow."""
    found: list[dict[str, Any]] = json.loads(forked(RECORDS, str(folder)))
    return found


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, byte for byte."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
