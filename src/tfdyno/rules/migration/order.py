"""Settings that come too late: after TensorFlow has taken the GPU, or after an import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.migration.hits import Hit
from tfdyno.rules.migration.sequence import runs
from tfdyno.rules.migration.sites import Module, Site, ends, is_exclusive, is_keras

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SETTINGS = (
    "config.experimental.set_memory_growth",
    "config.set_logical_device_configuration",
    "config.experimental.set_virtual_device_configuration",
    "config.set_visible_devices",
    "config.experimental.set_visible_devices",
    "config.threading.set_intra_op_parallelism_threads",
    "config.threading.set_inter_op_parallelism_threads",
)
_STARTS = (
    "tf.constant", "tf.Variable", "tf.zeros", "tf.ones", "tf.fill", "tf.range", "tf.eye",
    "tf.convert_to_tensor", "tf.cast", "tf.matmul", "tf.device",
    "tf.config.list_logical_devices", "tf.config.experimental.list_logical_devices",
    "tf.distribute.MirroredStrategy", "tf.random.normal", "tf.random.uniform",
    "tf.summary.create_file_writer",
    "tf.data.Dataset.from_tensor_slices", "tf.data.Dataset.from_tensors", "tf.data.Dataset.range",
)  # fmt: skip
"""Calls after which TensorFlow 2.21.0 refused such a setting; each was tried in a process."""
_BUILDS = (
    "Model", "models.Model", "models.load_model", "optimizers.Adam", "optimizers.AdamW",
    "optimizers.SGD", "optimizers.RMSprop", "layers.Dropout", "metrics.Mean",
)  # fmt: skip
"""Those of Keras, tried in the same way."""
_KERAS = ("keras", "tf.keras", "keras_hub", "keras_cv", "keras_nlp")


def find(module: Module) -> Iterator[Hit]:
    """Settings that come after what they should come before."""
    for order in runs(module):
        start = _first(order, _is_start)
        tensorflow = _first(order, lambda site: site.imports("tf", *_KERAS))
        keras = _first(order, lambda site: site.imports(*_KERAS))
        for index, site in enumerate(order):
            if site.kind == "call" and site.path.startswith("tf.") and ends(site.path, *_SETTINGS):
                yield from _late("growth_too_late", site, index, order, start, module)
            elif site.kind == "environment" and site.path == "CUDA_VISIBLE_DEVICES":
                late = list(_late("visible_devices_late", site, index, order, start, module))
                yield from late or _late(
                    "visible_devices_after_import", site, index, order, tensorflow, module
                )
            elif site.kind == "environment" and site.path == "KERAS_BACKEND":
                yield from _late("backend_after_import", site, index, order, keras, module)


def _late(
    cause: str, site: Site, index: int, order: list[Site], first: int, module: Module
) -> Iterator[Hit]:
    if not 0 <= first < index or is_exclusive(order[first], site):
        return
    before = order[first]
    if _is_restarted(before, site, module):
        return
    yield Hit(
        cause=cause,
        source=module.source(site.line),
        text=module.text(site.line),
        name=site.path,
        values={
            "before": module.text(before.line),
            "before_where": module.source(before.line),
            "late": module.text(site.line),
        },
    )


def _is_restarted(before: Site, site: Site, module: Module) -> bool:
    """Whether the cell of a notebook imports anew, as is done after a restart of its kernel."""
    if not module.cells:
        return False
    cell = module.cells[site.line - 1][0]
    return module.cells[before.line - 1][0] != cell and any(
        module.cells[other.line - 1][0] == cell and other.imports("tf", *_KERAS)
        for other in module.sites
    )


def _is_start(site: Site) -> bool:
    if site.kind != "call" or site.is_guarded:
        return False
    if is_keras(site.path):
        short = site.path.removeprefix("tf.").removeprefix("keras.")
        return short in _BUILDS or short.startswith("applications.") or _is_fit(short)
    return site.path in _STARTS


def _is_fit(short: str) -> bool:
    return ")." in short and ends(short, "fit", "predict", "evaluate", "train_on_batch")


def _first(order: list[Site], test: Callable[[Site], bool]) -> int:
    return next((index for index, site in enumerate(order) if test(site)), -1)
