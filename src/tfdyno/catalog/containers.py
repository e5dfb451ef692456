"""Public container images of TensorFlow for GPUs."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal, cast

from tfdyno.catalog.tables import DATA, Row, read_table

COLUMNS = (
    "tensorflow", "version", "image", "python", "cuda", "cudnn", "requirement", "tfdyno", "digest",
    "notes", "source",
)  # fmt: skip
USES = ("beside", "apart", "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerImage:
    """The public container image of one TensorFlow release for GPUs."""

    tensorflow: str
    """major.minor."""
    version: str
    """The version of the TensorFlow inside: ``2.21.0``."""
    image: str
    """``tensorflow/tensorflow:2.21.0-gpu``; empty: there is none."""
    python: str
    """Interpreter inside, major.minor."""
    cuda: str
    cudnn: str
    """The cuDNN of the image's own libraries, which may be older than TensorFlow needs."""
    requirement: str
    """What must be installed in it before TensorFlow sees a GPU; empty: nothing."""
    tfdyno: Literal["beside", "apart", "no"]
    """Whether tfdyno can be installed beside TensorFlow, needs an environment of its own, or
    cannot be used in it."""
    digest: str
    """``sha256:...`` where a public source tells it; empty: unknown."""
    notes: str
    source: str


@functools.lru_cache(maxsize=1)
def container_images() -> tuple[ContainerImage, ...]:
    """Return the image of every TensorFlow release in the table, oldest first.

    Raises:
        ToolError: The shipped table is corrupt.
    """
    path = DATA / "containers.csv"
    rows = read_table(path, COLUMNS, key=("tensorflow",), ordered=False)
    return tuple(map(_image, rows))


def _image(row: Row) -> ContainerImage:
    use = row.text("tfdyno")
    if use not in USES:
        raise row.fault(f"tfdyno is '{use}', not one of {', '.join(USES)}")
    values = {name: row.text(name) for name in COLUMNS if name != "tfdyno"}
    return ContainerImage(tfdyno=cast("Literal['beside', 'apart', 'no']", use), **values)
