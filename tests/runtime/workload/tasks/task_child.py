"""Child of the tests of tasks: prints one line of JSON.

Usage: ``task_child.py describe`` (on any backend, no weights) or ``task_child.py learn NAME HOW …``
with HOW whole, shuffled (labels) or still (a learning rate of 0): the training of the task's goal.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np

from tfdyno.catalog.tasks import find_task
from tfdyno.runtime.workload import real_data, tasks

COUNT = 3
LARGE = 100_000  # numbers, which would take long as JSON


def picture() -> np.ndarray[Any, Any]:
    """Three images; the second is white at row 0, column 0 and in the block of rows 8 to 11."""
    images = np.zeros((COUNT, real_data.SIZE, real_data.SIZE), np.uint8)
    images[1, 0, 0] = 255
    images[1, 8:12, 8:12] = 128
    return images


def described(name: str) -> dict[str, Any]:
    """What a task is, as it was built, and what it makes of ``picture``."""
    import keras

    model, spec = tasks.model_and_spec(name)
    module = tasks._module(name)
    x, y = module.examples(picture(), np.array([0, 4, 9], np.int32))
    real = [np.asarray(part) for part in keras.tree.flatten((x, y))]
    noise, targets = module.random_examples(np.random.default_rng(5), COUNT)
    return {
        "parameter_count": sum(math.prod(v.shape) for v in model.weights),
        "trainable": sum(math.prod(v.shape) for v in model.trainable_weights),
        "inputs": [f"{i.dtype}[{','.join(map(str, i.shape[1:]))}]" for i in model.inputs],
        "optimizer": type(model.optimizer).__name__,
        "rate": module.RATE,
        "rate_batch_size": getattr(module, "RATE_BATCH_SIZE", 0),
        "batch_sizes": module.BATCH_SIZES,
        "goal_steps": module.GOAL_STEPS,
        "samples_per_epoch": spec.samples_per_epoch,
        "batch_size": spec.batch_size,
        "output_dtype": str(model.output.dtype),
        "real": [a.tolist() for a in real if a.size < LARGE],
        "brightest": np.argwhere(real[0][1] == real[0].max()).tolist(),
        "real_kinds": kinds((x, y)),
        "random_kinds": kinds((noise, targets)),
        "random_ends": [
            [float(a.min()), float(a.max())] for a in keras.tree.flatten((noise, targets))
        ],
    }


def kinds(structure: object) -> list[str]:
    """``float32[3,28,28]`` of every array."""
    import keras

    arrays = [np.asarray(part) for part in keras.tree.flatten(structure)]
    return [f"{a.dtype}[{','.join(map(str, a.shape))}]" for a in arrays]


def describe() -> dict[str, Any]:
    """All tasks, in float32 but for their count under mixed precision."""
    import keras

    from tfdyno.runtime.workload.weightless import weightless

    with weightless():
        found = {name: described(name) for name in tasks.MODULES}
        keras.config.set_dtype_policy("mixed_float16")
        for name in tasks.MODULES:
            found[name]["mixed_output_dtype"] = str(tasks.model_and_spec(name)[0].output.dtype)
    return found


def shuffled(images: int = 0) -> real_data.RealData:
    """The real data with its training labels in another order."""
    found = LOAD(images)
    labels = np.random.default_rng(1).permutation(found.train.labels)
    train = real_data.Part(images=found.train.images, labels=labels)
    return real_data.RealData(name=found.name, train=train, evaluation=found.evaluation)


LOAD = real_data.load


def learn(name: str, how: str) -> dict[str, Any]:
    """Train as the goal says, possibly broken, and tell the history."""
    goal = find_task(name).goal
    real_data.load = shuffled if how == "shuffled" else LOAD
    task = tasks.build(name, batch_size=goal.batch_size, real=True, images=goal.images)
    if how == "still":
        task.model.optimizer.learning_rate = 0.0
    evaluation = task.evaluation if goal.metric.startswith("val_") else None
    fitted = task.model.fit(
        task.data, epochs=goal.epochs, validation_data=evaluation, shuffle=False, verbose=0
    )
    history = {key: [float(v) for v in values] for key, values in fitted.history.items()}
    return {"data_set": task.data_set, "samples": task.samples_per_epoch, "history": history}


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    learnt = command == "learn" and {how: learn(words[0], how) for how in words[1:]}
    print("\n" + json.dumps(learnt or describe()))
