"""The Python file beside a converted data set that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.render.base.template import environment

if TYPE_CHECKING:
    from tfdyno.core.deploy.dataset import Dataset


def dataset_reader(dataset: Dataset) -> str:
    """Write plain TensorFlow with ``read(batch_size)``; the manifest names the columns."""
    roles = {one.role for one in dataset.features}
    kind = "csv" if dataset.settings.kind == "csv" else "pixels" if "pixels" in roles else "images"
    page = environment().get_template("read_dataset.py.j2")
    return page.render(kind=kind, label=bool(dataset.settings.label)).rstrip("\n") + "\n"
