"""Public container images of TensorFlow for GPUs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast

from tfdyno.catalog.tables import DATA, Row, read_table
from tfdyno.core.software import ContainerImage

if TYPE_CHECKING:
    from typing import Literal

COLUMNS = (
    "tensorflow", "version", "image", "python", "cuda", "cudnn", "requirement", "tfdyno", "digest",
    "notes", "source",
)  # fmt: skip
USES = ("beside", "apart", "no")


@functools.lru_cache(maxsize=1)
def container_images() -> tuple[ContainerImage, ...]:
    """The image of every TensorFlow release in the table, oldest first.

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
