"""What each use of Horovod becomes, line by line; what is left to a person is named."""

from __future__ import annotations

import ast
import itertools
import re
from typing import TYPE_CHECKING

import pytest

from tfdyno.rules.horovod.rewrite import migrated, uses_horovod

if TYPE_CHECKING:
    from tfdyno.core.doctor.migration import Migration

HEAD = "import horovod.tensorflow.keras as hvd\nimport keras\nimport tensorflow as tf\n"
FIT = "model.fit(data, steps_per_epoch=9)\n"
OWN = ("import ", "strategy = ", "replicas = ", "worker = ")
"""Begin the lines that stand at the head of a migrated script."""


def of(source: str) -> Migration:
    found = migrated("train.py", HEAD + source)
    ast.parse(found.after)
    return found


def body(source: str) -> str:
    """What became of the lines below the imports."""
    found = of(source)
    assert found.hands == ()
    assert "hvd" not in found.after
    assert not uses_horovod(found.after)
    lines = [one for one in found.after.splitlines() if not one.startswith(OWN)]
    return "\n".join(lines).strip("\n")


def hand(source: str) -> tuple[int, str]:
    """Line (below the imports, from 1) and reason of the one place that is left to a person."""
    (one,) = of(source).hands
    assert one.remedy
    return one.line - HEAD.count("\n"), one.why


CASES = [
    ("hvd.init()\nx = 1", "x = 1"),
    ("rate = 0.1 * hvd.size()", "rate = 0.1 * replicas"),
    ("verbose = 1 if hvd.rank() == 0 else 0", "verbose = 1 if worker == 0 else 0"),
    ("print(f'{hvd.rank()} of {hvd.size()}')", "print(f'{worker} of {replicas}')"),
    ("path = 'mnist-%d.npz' % hvd.rank()", "path = 'mnist-%d.npz' % worker"),
    ("opt = hvd.DistributedOptimizer(opt)\nx = 1", "x = 1"),
    (
        "opt = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1 * hvd.size()), op=hvd.Average)",
        "opt = keras.optimizers.SGD(0.1 * replicas)",
    ),
    (
        "c = hvd.Compression.fp16 if half else hvd.Compression.none\n"
        "opt = hvd.DistributedOptimizer(optimizer=make(), compression=c)",
        "opt = make()",
    ),
    (
        "opt = keras.optimizers.Adam(1e-3)\nopt = hvd.DistributedOptimizer(\n    opt, "
        "backward_passes_per_step=4, average_aggregated_gradients=True)",
        "opt = keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)",
    ),
    ("opt = tf.keras.optimizers.legacy.SGD(0.1)", "opt = tf.keras.optimizers.SGD(0.1)"),
    (
        "model.compile('sgd', 'mse', experimental_run_tf_function=False)",
        "model.compile('sgd', 'mse')",
    ),
    (
        "model.compile(experimental_run_tf_function=False, optimizer='sgd')",
        "model.compile(optimizer='sgd')",
    ),
    ("model = hvd.load_model(path, compression=c)", "model = keras.models.load_model(path)"),
    # Devices
    (
        "gpus = tf.config.list_physical_devices('GPU')\nif gpus:\n"
        "    tf.config.set_visible_devices(gpus[hvd.local_rank()], 'GPU')\nx = 1",
        "x = 1",
    ),
    ("os.environ['CUDA_VISIBLE_DEVICES'] = str(hvd.local_rank())\nx = 1", "x = 1"),
    ("os.environ['CUDA_VISIBLE_DEVICES'] = '-1'", "os.environ['CUDA_VISIBLE_DEVICES'] = '-1'"),
    ("def pin():\n    hvd.init()", "def pin():\n    pass"),
    # Callbacks
    (
        "c = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), a, "
        "hvd.callbacks.MetricAverageCallback()]",
        "c = [a]",
    ),
    ("c = [a, hvd.callbacks.MetricAverageCallback(), b]", "c = [a, b]"),
    ("c = [hvd.callbacks.MetricAverageCallback()]", "c = []"),
    (
        "c = [\n    # Horovod: average.\n    hvd.callbacks.MetricAverageCallback(),  # all\n"
        "    # Mine.\n    a,\n]",
        "c = [\n    # Mine.\n    a,\n]",
    ),
    ("b = hvd.callbacks.MetricAverageCallback()\nc = [a, b]", "c = [a]"),
    ("c.append(hvd.callbacks.MetricAverageCallback())\nx = 1", "x = 1"),
    ("if first:\n    hvd.broadcast_variables(model.variables, root_rank=0)\nx = 1", "x = 1"),
    # One process alone, or all together
    (
        "if hvd.rank() == 0:\n    # Keep it.\n    c.append(keras.callbacks.ModelCheckpoint('a'))\n"
        "    text = '''\n    as it is'''",
        "# Keep it.\nc.append(keras.callbacks.ModelCheckpoint('a'))\ntext = '''\n    as it is'''",
    ),
    ("if hvd.rank() == 0: model.save('a.keras')", "model.save('a.keras')"),
    ("if not hvd.rank():\n    model.load_weights('a')", "model.load_weights('a')"),
    ("if hvd.rank() == 0:\n    model.set_weights(w)", "model.set_weights(w)"),
    ("if hvd.rank() == 0:\n    print('done')", "if worker == 0:\n    print('done')"),
    ("if hvd.local_rank() == 0:\n    download()", "download()"),
    (
        "if remote:\n    np = 2\n    hvd.run(main, np=np)\nelse:\n    main()\n    end()",
        "main()\nend()",
    ),
    # Data
    ("data = data.shard(hvd.size(), hvd.rank())\nx = 1", "x = 1"),
    ("data = (\n    files\n    .shard(num_shards=hvd.size(), index=hvd.rank())\n    .map(f)\n)",
     "data = (\n    files\n    .map(f)\n)"),
    ("data = read().batch(16)", "data = read().batch(16 * replicas)"),
    ("data = read().batch(a + b, drop_remainder=True)",
     "data = read().batch((a + b) * replicas, drop_remainder=True)"),
    ("seen = read()\nseen = seen.batch(8)\nmodel.predict(seen)",
     "seen = read()\nseen = seen.batch(8)\nmodel.predict(seen)"),
    ("model.predict(read().batch(8))", "model.predict(read().batch(8))"),
    ("x, y = x[hvd.rank()::hvd.size()], y[hvd.rank() :: hvd.size()]", "x, y = x, y"),
    ("tf.random.set_seed(7 + hvd.rank())", "tf.random.set_seed(7 + 0)"),
    ("data = data.shuffle(9, seed=hvd.rank())", "data = data.shuffle(9, seed=0)"),
    (
        "x = x[hvd.rank()::hvd.size()]\nmodel.fit(x, y, batch_size=B, epochs=3)",
        "model.fit(x, y, batch_size=B * replicas, epochs=3)",
    ),
    (
        "n = int(12 / hvd.size())\nmodel.fit(x, y, epochs=n)",
        "n = int(12)\nmodel.fit(x, y, epochs=n, batch_size=32 * replicas)",
    ),
    (
        "model.fit(data, steps_per_epoch=500 // hvd.size())",
        "model.fit(data, steps_per_epoch=500 // replicas)",
    ),
    (
        "class Mine(keras.Model):\n    def train_step(self, data):\n"
        "        with tf.GradientTape() as tape:\n            loss = f(data)\n"
        "        tape = hvd.DistributedGradientTape(tape)\n        return loss\n" + FIT,
        "class Mine(keras.Model):\n    def train_step(self, data):\n"
        "        with tf.GradientTape() as tape:\n            loss = f(data)\n"
        "        return loss\n" + FIT.strip(),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), CASES, ids=[one for one, _ in CASES])
def test_a_use_of_horovod_becomes_what_the_trainer_does(source: str, expected: str) -> None:
    assert body(f"{source}\n") == expected


@pytest.mark.parametrize("pair", [*itertools.pairwise(CASES)], ids=lambda pair: pair[0][0][:30])
def test_uses_do_not_disturb_each_other(pair: tuple[tuple[str, str], tuple[str, str]]) -> None:
    (one, _), (other, _) = pair
    if re.search(r"\bdef |\.fit\(|\bopt\b|^b = ", one + other):
        return  # they speak of one another
    assert "hvd" not in of(f"{one}\n{other}\n").after


HANDS = [
    ("hvd.allreduce(loss)", 1, "averaged over processes"),
    ("x = 1\n@hvd.elastic.run\ndef train(state):\n    pass", 2, "cannot change during"),
    ("opt = hvd.DistributedOptimizer(opt, op=hvd.Sum)", 1, "adds or combines"),
    ("opt = hvd.DistributedOptimizer(opt, process_set=p)", 1, "only some processes"),
    ("opt = hvd.DistributedOptimizer(opt, **given)", 1, "not named here"),
    ("opt = hvd.DistributedOptimizer(opt, backward_passes_per_step=4)", 1, "adds the gradients"),
    (
        "def f(opt):\n    return hvd.DistributedOptimizer(opt, backward_passes_per_step=n, "
        "average_aggregated_gradients=True)",
        2,
        "is not made here",
    ),
    ("with tf.GradientTape() as t:\n    f()\nt = hvd.DistributedGradientTape(t)", 3, "of its own"),
    ("part = len(x) // 2\nx = x[part * hvd.rank():]", 2, "share of the data"),
    ("if hvd.rank() == 0:\n    model.save('a')\nelse:\n    x = 1", 1, "save is done by some"),
    ("c = [keras.callbacks.ModelCheckpoint('a')] if hvd.rank() == 0 else []", 1, "by some"),
    ("def keep():\n    model.save('a')\nif hvd.rank() == 0 and x:\n    keep()", 3, "save is done"),
    ("if hvd.rank() > 0:\n    raise SystemExit", 1, "share of the data"),
    ("n = hvd.local_size()", 1, "has all GPUs of its node"),
    ("f(hvd.size)", 1, "handed on"),
    ("start(hvd.callbacks.MetricAverageCallback())", 1, "of all replicas already"),
    ("model.fit(x, y, epochs=3)", 1, "goes over all samples"),
    ("model.fit(data)", 1, "goes over all samples"),
    ("model.fit(made.flow(x, y), steps_per_epoch=3)", 1, "makes batches by itself"),
    ("hvd.run(main, np=2)", 1, "starts processes"),
    ("hvd.what_is_this()", 1, "has nothing that stands for it"),
    ("import horovod.torch", 1, "no part of it that Keras needs"),
    ("with tf.GradientTape() as tape:\n    pass", 1, "of its own"),
]


@pytest.mark.parametrize(("source", "line", "why"), HANDS, ids=[one for one, *_ in HANDS])
def test_what_cannot_be_told_is_left_to_a_person(source: str, line: int, why: str) -> None:
    found_line, found_why = hand(f"hvd.init()\n{source}\n")
    assert found_line == line + 1
    assert why in found_why


def test_a_script_with_places_for_a_person_keeps_its_import() -> None:
    assert "import horovod.tensorflow.keras as hvd" in of("hvd.allreduce(x)\n").after


@pytest.mark.parametrize(
    "start",
    [
        "import horovod.keras as hvd\nhvd.init()\nn = hvd.size()",
        "from horovod.tensorflow import keras as hvd\nhvd.init()\nn = hvd.size()",
        "from horovod.tensorflow.keras import init, size\ninit()\nn = size()",
        "import os, horovod.tensorflow as hvd\nhvd.init()\nn = hvd.size()",
        "import horovod.tensorflow.keras\nhorovod.tensorflow.keras.init()\n"
        "n = horovod.tensorflow.keras.size()",
    ],
)
def test_every_way_to_import_horovod_is_known(start: str) -> None:
    found = migrated("train.py", f"{start}\n")
    assert found.hands == ()
    assert "horovod" not in found.after
    assert "import tensorflow as tf" in found.after
    assert found.after.endswith("n = replicas\n")


def test_names_of_the_script_are_not_taken() -> None:
    found = of("replicas, worker = 3, 4\nn = hvd.size()\nprint(hvd.rank())\n")
    assert "n = replica_count\n" in found.after
    assert "print(worker_number)\n" in found.after


def test_callbacks_are_written_out_once_and_in_the_script_s_own_words() -> None:
    found = of("c = [hvd.callbacks.LearningRateWarmupCallback(r), "
               "hvd.callbacks.LearningRateWarmupCallback(s)]\n")  # fmt: skip
    assert found.hands == ()
    assert found.after.count("class LearningRateWarmupCallback(") == 1
    assert "class LearningRateScheduleCallback(keras.callbacks.Callback):" in found.after
    assert found.after.endswith(
        "c = [LearningRateWarmupCallback(r), LearningRateWarmupCallback(s)]\n"
    )
    assert max(map(len, found.after.splitlines())) <= 100


def test_lines_may_end_with_a_return_too() -> None:
    source = (HEAD + "hvd.init()\nn = hvd.size()\n").replace("\n", "\r\n")
    after = migrated("train.py", source).after
    assert after.count("\n") == after.count("\r\n")
    assert after.endswith("n = replicas\r\n")


def test_the_diff_makes_the_new_script_of_the_old_one() -> None:
    found = of("hvd.init()\nn = hvd.size()\n")
    added = [one[1:] for one in found.diff.splitlines() if re.match(r"\+(?!\+\+)", one)]
    removed = [one[1:] for one in found.diff.splitlines() if re.match(r"-(?!--)", one)]
    assert set(added) <= set(found.after.splitlines())
    assert set(removed) <= set(found.before.splitlines())
    assert "--- a/train.py\n+++ b/train.py\n" in found.diff
