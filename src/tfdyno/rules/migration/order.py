"""Settings that come too late: after TensorFlow has taken the GPU, or after an import."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.rules.condition import holds
from tfdyno.rules.migration.hits import Hit, hit_at
from tfdyno.rules.migration.sequence import runs
from tfdyno.rules.migration.sites import Module, Site, ends, is_exclusive, is_keras

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.doctor.finding import Verdict

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
TRUE = ("1", "true", "True")
"""What TensorFlow takes for yes in TF_USE_LEGACY_KERAS."""
_LEGACY_SINCE = ">=2.16"
_ON_TF_KERAS = (
    "transformers", "tensorflow_hub", "tensorflow_probability", "tensorflow_addons",
    "tensorflow_recommenders", "tensorflow_model_optimization", "tensorflow_decision_forests",
    "official", "object_detection",
)  # fmt: skip
"""Packages whose own code goes through ``tf.keras``."""
_KERAS = ("keras", "tf.keras", "keras_hub", "keras_cv", "keras_nlp")


def find(module: Module) -> Iterator[Hit]:
    """Find settings that come after what they should come before."""
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
            elif _asks_legacy(site):
                late = list(_late("legacy_keras_ignored", site, index, order, tensorflow, module))
                yield from late or _ignored(site, module)


def asks_in_time(module: Module) -> bool:
    """Return whether the file asks for Keras 2 before TensorFlow or Keras is imported."""
    for each in next(runs(module), []):
        if each.imports("tf", *_KERAS):
            return False
        if _asks_legacy(each):
            return True
    return False


def _asks_legacy(site: Site) -> bool:
    return site.kind == "environment" and site.path == "TF_USE_LEGACY_KERAS" and site.text in TRUE


def _ignored(site: Site, module: Module) -> Iterator[Hit]:
    """Find the switch where this TensorFlow, or the way that Keras is imported, ignores it."""
    tensorflow = module.values.get("tensorflow", "")
    direct = next((each for each in module.sites if each.imports("keras")), None)
    if tensorflow and not holds({"tensorflow": _LEGACY_SINCE}, module.values):
        told = {"old": tensorflow}
    elif direct and not _reads_tf_keras(module):
        told = {"direct": module.text(direct.line), "direct_where": module.source(direct.line)}
    else:
        return
    verdict: Verdict = "proven" if "old" in told else "likely"
    hit = hit_at(site, module, "legacy_keras_ignored", verdict, name=site.path)
    yield replace(hit, values=told)


def _reads_tf_keras(module: Module) -> bool:
    """Return whether the file, or a package that it imports, builds on ``tf.keras``."""
    named = any(each.path.startswith("tf.keras") for each in module.sites)
    return named or module.imports(*_ON_TF_KERAS)


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
    """Return whether a notebook's cell imports anew, as after a restart of its kernel."""
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
