"""What the parts that load a workload do, all of it seen in one process with TensorFlow."""

from __future__ import annotations

import functools
from typing import Any

from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once

CODE = """
import contextlib, io, sys, tempfile
from pathlib import Path
folder = Path(tempfile.mkdtemp())
import numpy as np, tensorflow as tf, keras
from tfdyno.core.base.errors import UsageError
from tfdyno.core.train.training import TrainOutcome
from tfdyno.core.choose.workload import Workload
from tfdyno.core.messages.child import Nothing
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.base import place
from tfdyno.runtime.train.finished_fit import FinishedFit
from tfdyno.runtime.workload.fit_call import Call, as_arguments, built
from tfdyno.runtime.workload.held_calls import Held, held_calls
from tfdyno.runtime.workload.rebatch import is_arrays, rebatched
from tfdyno.runtime.workload.capture import run_as_main
from tfdyno.runtime.base.software import import_tensorflow, software
from tfdyno.process.stop_asked import StopAsked, asked_to_stop
from tfdyno.runtime.recipe.strategy import strategies_held

result = {}
x = np.arange(50, dtype="float32").reshape(50, 1)
y = 2 * x

def sizes(dataset):
    return [int(batch[0].shape[0]) for batch in dataset]

# rebatch
slices = tf.data.Dataset.from_tensor_slices((x, y))
def cut(dataset, **how):
    made, notes = rebatched({"x": dataset}, 20, **how)
    return [sizes(made["x"]), *notes]
given = {
    "open": slices.batch(16).prefetch(2), "whole": slices.batch(16, drop_remainder=True),
    "mapped": slices.batch(16).map(lambda a, b: (a, b)),
    "mapped_whole": slices.batch(16, drop_remainder=True).map(lambda a, b: (a, b)),
}
result["kept"] = {name: cut(data, whole_only=False) for name, data in given.items()}
result["dropped"] = {name: cut(data) for name, data in given.items()}
result["arrays"] = rebatched({"x": x}, 20)[0]["batch_size"]
result["as_it_is"] = sizes(rebatched({"x": given["open"]}, 0)[0]["x"])
result["is_arrays"] = [is_arrays(one) for one in (x, slices, (part for part in []))]

# held_calls
def model():
    m = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    m.compile("adam", "mse")
    return m
held, m = Held(), model()
own_fit = keras.Model.fit
with held_calls(held):
    result["held_fit"] = m.fit(x, y, epochs=3).history["loss"]
    m.save(folder / "never.keras")
    result["held_predict"] = list(m.predict(x[:2], verbose=0).shape)
result["held"] = [held.calls, *held.notes, (folder / "never.keras").exists()]
result["restored"] = keras.Model.fit is own_fit

# fit_call
(folder / "build.py").write_text(
    "import keras, numpy as np\\n"
    "def plain():\\n"
    "    m = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])\\n"
    "    m.fit\\n"
    "    return m, (np.ones((4, 1)), np.ones((4, 1)), np.ones(4))\\n"
)
call = built(Workload(reference=f"{folder / 'build.py'}:plain", kind="function"))
result["call"] = [call.title, sorted(call.arguments), call.notes]
m.save(folder / "kept.keras")
kept = built(Workload(reference=str(folder / "kept.keras"), kind="keras_file"))
result["kept_weights"] = bool(np.all(kept.model.layers[0].kernel == m.layers[0].kernel))
result["kept_title"] = kept.title
result["batch_sizes"] = [call.batch_size(Recipe(batch_size=8)),
                         Call(model=m, title="", is_batched=True).batch_size(Recipe(batch_size=8))]
result["data"] = [as_arguments(None), sorted(as_arguments((x, y))), list(as_arguments(slices))]

# capture
script = folder / "script.py"
script.write_text("import sys\\nprint(sys.argv[1:], __name__, sys.path[0])\\nsys.exit(3)\\n")
said = io.StringIO()
with contextlib.redirect_stdout(said):
    run_as_main(script, ("a", "b"), is_enough=lambda: True)
result["script"] = said.getvalue().split()
result["script_folder"] = str(folder.resolve())
try:
    with contextlib.redirect_stdout(said):
        run_as_main(script, (), is_enough=lambda: False)
except SystemExit as error:
    result["script_exit"] = error.code

# software
import_tensorflow(Workload(reference="train.py", kind="script"), "train", "train")
result["software"] = software()
told = []
result["place"] = {"software": place.handle(Nothing(), told.append), "told": told}
sys.modules["keras"], whole = None, sys.modules["keras"]
try:
    import_tensorflow(Workload(reference="train.py", kind="script"), "train", "train")
except UsageError as error:
    result["no_keras"] = str(error)
sys.modules["keras"] = whole

# stop_asked
try:
    try:
        raise StopAsked("SIGTERM")
    except Exception:
        result["stop"] = "swallowed"
except BaseException as error:
    result["stop"] = error.signal_name

import os, signal, threading
asked = []
with asked_to_stop(asked.append):
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
result["asked"] = asked
result["handlers"] = [signal.getsignal(one) in (signal.SIG_DFL, signal.default_int_handler)
                      for one in (signal.SIGTERM, signal.SIGINT)]
def elsewhere():
    with asked_to_stop(asked.append):
        result["elsewhere"] = "no signals here"
thread = threading.Thread(target=elsewhere)
thread.start()
thread.join()

# finished_fit
m.fit(x, y, epochs=2, verbose=0)
m.layers[0].kernel.assign([[7.0]])
finished = FinishedFit(str(folder / "run"))
result["finished"] = [finished.epochs(5)]
outcome = TrainOutcome(history={"loss": [1.0, 0.5]}, epochs=2, steps=4, updates=4, seed=1)
finished.keep(m, outcome, 5)
drawn = float(np.random.random())
m.layers[0].kernel.assign([[0.0]])
before = int(m.optimizer.iterations)
m.optimizer.iterations.assign(0)
result["finished"] += [finished.epochs(5), finished.epochs(6), finished.epochs(3)]
finished.restore(m)
result["finished"] += [float(m.layers[0].kernel[0, 0]), int(m.optimizer.iterations) == before,
                       float(np.random.random()) == drawn]
nowhere = FinishedFit("")
nowhere.keep(m, outcome, 1)
result["nowhere"] = nowhere.epochs(1)

# strategies_held
notes = []
own = tf.distribute.MirroredStrategy
with strategies_held(None, "", notes):
    result["left_alone"] = tf.distribute.MirroredStrategy is own
with strategies_held(None, "single", notes):
    made = tf.distribute.MirroredStrategy(["CPU:0"])
    tf.distribute.MirroredStrategy()
    result["single"] = [type(made).__name__, made.num_replicas_in_sync]
    with made.scope():
        result["single"].append(type(tf.distribute.get_strategy()).__name__)
mirrored = own(["CPU:0"])
with strategies_held(mirrored, "mirrored", notes), mirrored.scope():
    other = tf.distribute.MultiWorkerMirroredStrategy()
    with other.scope():
        result["same"] = [other is mirrored, tf.distribute.get_strategy() is mirrored]
    result["is_one"] = isinstance(other, tf.distribute.MultiWorkerMirroredStrategy)
result["strategy_notes"] = notes
result["strategy_restored"] = tf.distribute.MirroredStrategy is own
"""


@functools.cache
def facts() -> dict[str, Any]:
    """What was seen, by name."""
    found: dict[str, Any] = once("loaded", lambda: in_tensorflow(CODE))
    return found
