"""Standard tasks: well-known models with their optimizer, on random or on small real data.

Each module has the same six names: ``BATCH_SIZES`` (on a GPU, on a CPU), ``SAMPLES_PER_EPOCH`` (of
the data set that the model is known for; 0: none), ``GOAL_STEPS`` (of an epoch of the training that
reaches the goal), ``compiled(batch_size)``, ``random_examples`` (NumPy, what the model takes, of no
meaning) and ``examples`` (Keras operations: real images and their classes as what the model takes).
``catalog/data/tasks.toml`` says where all of it is from.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.workload.dataspec import DataSpec, of_batch

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Module, Value

MODULES = {
    "bert-base": "bert_base",
    "dlrm": "dlrm",
    "efficientnet-b0": "efficientnet_b0",
    "lstm": "lstm",
    "resnet18-cifar10": "resnet18_cifar10",
    "resnet50-imagenet": "resnet50_imagenet",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A compiled model with weights, and what it is trained on."""

    model: Any
    data: Any
    """``tf.data.Dataset`` of (x, y): random ones without end, or one epoch of real ones."""
    evaluation: Any
    """``tf.data.Dataset``; None for random data."""
    data_set: str
    """Name of the real data; empty for random data."""
    batch_size: int
    samples_per_epoch: int
    """0 for random data."""


def build(
    name: str, *, batch_size: int = 0, real: bool = False, seed: int = 0, images: int = 0
) -> Task:
    """Build a task on the TensorFlow backend.

    Args:
        name: One of ``MODULES``.
        batch_size: Samples per step; 0: the task's own for a GPU, or for a CPU where there is none.
        real: Train on small real data instead of random numbers.
        seed: Of the weights, of dropout, and of the order of the samples.
        images: At most so many real images and a quarter more for evaluation; 0: all of them.

    Raises:
        UsageError: The name is unknown, or there is no real data, or less of it than one batch.
    """
    import keras

    module = _module(name)
    size = batch_size or _own_batch_size(module)
    keras.utils.set_random_seed(seed)
    if real:
        return _on_real_data(name, module, size, seed, images)
    return Task(
        model=module.compiled(size),
        data=_random_data(module, size, seed),
        evaluation=None,
        data_set="",
        batch_size=size,
        samples_per_epoch=0,
    )


def goal_images(name: str, batch_size: int = 0) -> int:
    """Return real images of an epoch with as many steps as one of the goal, whatever the batch.

    Two steps at the least: the first of an epoch is not counted.

    Args:
        name: One of ``MODULES``.
        batch_size: As for ``build``.

    Raises:
        UsageError: The name is unknown.
    """
    module = _module(name)
    return max(2, module.GOAL_STEPS) * (batch_size or _own_batch_size(module))


def model_and_spec(name: str) -> tuple[Any, DataSpec]:
    """Return the compiled model and its data's shapes, on any backend; raises as ``build`` does."""
    import numpy as np

    module = _module(name)
    size = module.BATCH_SIZES[0]
    spec = of_batch(*module.random_examples(np.random.default_rng(0), 2))
    samples = module.SAMPLES_PER_EPOCH
    return module.compiled(size), replace(spec, batch_size=size, samples_per_epoch=samples)


def _module(name: str) -> Value:
    if name not in MODULES:
        remedy = f"known: {', '.join(MODULES)}"
        raise UsageError(f"there is no standard task {name!r}", remedy=remedy)
    return importlib.import_module(f"{__name__}.{MODULES[name]}")


def _own_batch_size(module: Module) -> int:
    import tensorflow as tf

    gpu, cpu = module.BATCH_SIZES
    return int(gpu if tf.config.list_physical_devices("GPU") else cpu)


def _random_data(module: Module, batch_size: int, seed: int) -> Value:
    import numpy as np
    import tensorflow as tf

    batch = module.random_examples(np.random.default_rng(seed), batch_size)
    return tf.data.Dataset.from_tensors(batch).repeat()


def _on_real_data(name: str, module: Module, batch_size: int, seed: int, images: int) -> Task:
    from tfdyno.runtime.workload.real_data import load

    found = load(images)
    count = len(found.train.labels) // batch_size * batch_size
    if not count:
        raise UsageError(
            f"task:{name} has {len(found.train.labels)} images of {found.name}",
            why=f"a batch of {batch_size} takes more",
            remedy="give a smaller batch",
        )
    return Task(
        model=module.compiled(batch_size),
        data=_pipeline(found.train, module, batch_size, seed),
        evaluation=_pipeline(found.evaluation, module, batch_size, None),
        data_set=found.name,
        batch_size=batch_size,
        samples_per_epoch=count,
    )


def _pipeline(part: Value, module: Module, batch_size: int, seed: int | None) -> Value:
    """Make whole batches in a new order every epoch; without a seed in the samples' own order."""
    import tensorflow as tf

    data = tf.data.Dataset.from_tensor_slices((part.images, part.labels))
    if seed is not None:
        data = data.shuffle(len(part.labels), seed=seed)
    data = data.batch(batch_size, drop_remainder=seed is not None)
    return data.map(module.examples, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
