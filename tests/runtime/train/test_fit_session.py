"""One session of ``tfdyno.fit``: numbers, data, stops and what is kept."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.fits import fitted

pytestmark = pytest.mark.tf
CASES = """
same = {"epochs": 3, "batch_size": 16, "validation_data": (x, y), "class_weight": {0: 1.0, 1: 2.0}}

def numbers():
    ours, keras_own = model(), model()
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        result = tfdyno.fit(ours, (x, y), recipe={"seed": NUMBER}, **same)
    keras.utils.set_random_seed(NUMBER)
    plain = keras_own.fit(x, y, verbose=0, **same)
    silent = io.StringIO()
    with contextlib.redirect_stderr(silent):
        tfdyno.fit(ours, (x, y), verbose=0)
    return {"ours": result.history, "plain": plain.history, "steps": result.steps,
            "notes": result.notes, "lines": stderr.getvalue(), "silent": silent.getvalue(),
            "shown": result._repr_html_(), "seed": result.recipe.seed, "output": result.model_path}

def raising():
    net, before = model(), signal.getsignal(signal.SIGINT)
    error = said(lambda: quiet(net, (x, y), callbacks=[At(2, fail)], output="raising"))
    return {"error": error, "works": plain_works(net),
            "handler": signal.getsignal(signal.SIGINT) is before}

def stopping():
    keyed = {"epochs": 4, "batch_size": 16, "recipe": {"seed": NUMBER}}
    whole = quiet(model(), (x, y), **keyed)
    net = model()
    stop = quiet(net, (x, y), output="stop", callbacks=At(6, lambda: interrupt(1)), **keyed)
    works = plain_works(net)
    held = said(lambda: quiet(model(), (x, y), output="stop", **keyed))
    other = said(lambda: quiet(model(), (x, y), output="stop", resume=True, recipe={"ema": 0.5}))
    going = {"epochs": 4, "batch_size": 16, "output": "stop", "resume": True}
    resumed = quiet(model(), (x, y), **going)
    finished = quiet(net := model(), (x, y), **going)
    twice = said(lambda: quiet(model(), (x, y), callbacks=At(3, lambda: interrupt(2)), **keyed))
    weights = [np.array(w).tolist() for w in net.get_weights()]
    kept = keras.saving.load_model(finished.model_path).get_weights()
    return {"stopped": stop.stopped, "steps": stop.steps, "notes": stop.notes, "works": works,
            "checkpoints": len(stop.checkpoints), "whole": whole.history, "held": held,
            "resumed": resumed.history, "from": resumed.resumed_from, "twice": twice,
            "finished": finished.history, "weights": weights, "other": other,
            "kept": [np.array(w).tolist() for w in kept]}

def kinds_of_data():
    data = tf.data.Dataset.from_tensor_slices((x, y))
    tf.random.set_seed(None)  # that of an earlier model
    free = data.shuffle(64).batch(64)
    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 4
        def __getitem__(self, index):
            return x[index * 16:][:16], y[index * 16:][:16]
    def generator():
        while True:
            yield x[:16], y[:16]
    weighted = x, y, np.ones(64, "float32")
    return {
        "dataset": quiet(model(), data.batch(16)).steps,
        "sequence": quiet(model(), Batches()).steps,
        "generator": quiet(model(), generator(), steps_per_epoch=3).steps,
        "weighted": quiet(model(), weighted, batch_size=16).steps,
        "named": quiet(model(), x, y=y, batch_size=16).steps,
        "rebatched": quiet(model(), data.batch(16), recipe={"batch_size": 8}).steps,
        "order": quiet(model(), free, recipe={"seed": 1}, output="free").notes,
        "no_seed": quiet(model(), (x, y), batch_size=64, output="none").notes,
    }
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return fitted(
        tmp_path_factory.mktemp("fit"), CASES, "numbers", "raising", "stopping", "kinds_of_data"
    )


def test_the_numbers_are_those_of_keras_fit_and_are_told_on_stderr(found: dict[str, Any]) -> None:
    case = found["numbers"]
    assert case["ours"] == case["plain"]
    assert set(case["ours"]) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    assert [len(values) for values in case["ours"].values()] == [3] * 4
    assert (case["steps"], case["seed"], case["output"]) == (12, 7, "")
    assert case["notes"][0] == "keras.utils.set_random_seed(7) was called at the start."
    told = [line.split("  loss")[0].split("s  ")[1] for line in case["lines"].splitlines()]
    assert told == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert case["silent"] == ""
    assert case["shown"].startswith("<p><strong>trained: loss ")


def test_what_a_callback_raises_comes_out_and_leaves_nothing(found: dict[str, Any]) -> None:
    case = found["raising"]
    assert case["error"] == "LookupError: of the callback"
    assert case["works"]
    assert case["handler"]


def test_ctrl_c_ends_with_a_checkpoint_from_which_it_goes_on(found: dict[str, Any]) -> None:
    case = found["stopping"]
    assert case["stopped"] == "Ctrl-C"
    assert 6 <= case["steps"] <= 7
    assert case["checkpoints"] >= 1
    assert "resume=True to go on" in case["notes"][-1]
    assert case["works"]
    assert case["resumed"] == case["whole"]
    assert case["from"].endswith(f"step-{case['steps']:09}.json")
    assert case["twice"] == "KeyboardInterrupt: "


def test_a_run_that_has_ended_is_brought_back_as_it_ended(found: dict[str, Any]) -> None:
    case = found["stopping"]
    assert case["finished"] == case["whole"]
    assert case["weights"] == case["kept"]


def test_a_folder_holds_one_run(found: dict[str, Any]) -> None:
    case = found["stopping"]
    assert "stop holds a run already; go on with it by resume=True" in case["held"]
    assert "stop holds another run: its ema is 0.0, not 0.5" in case["other"]


def test_all_that_fit_takes_is_data(found: dict[str, Any]) -> None:
    case = dict(found["kinds_of_data"])
    order, no_seed = case.pop("order"), case.pop("no_seed")
    assert case == {
        "dataset": 4, "sequence": 4, "generator": 3, "weighted": 4, "named": 4, "rebatched": 8,
    }  # fmt: skip
    assert any("shuffles without a seed" in note for note in order)
    assert any("Without a seed" in note for note in no_seed)


MODEL_CASES = """
def afterwards():
    net, recipe = model(), tfdyno.Recipe(execution="graph", steps_per_execution=2, accumulation=2,
                                         ema=0.9, clip_norm=1.0, batch_size=8)
    compiled = net.jit_compile, net.steps_per_execution
    first = quiet(net, (x, y), recipe=recipe)
    again = quiet(net, (x, y), recipe=recipe)
    return {"applied": [[one.name for one in each.applied] for each in (first, again)],
            "updates": [first.updates, again.updates], "steps": first.steps,
            "compile": compiled == (net.jit_compile, net.steps_per_execution),
            "clip": net.optimizer.global_clipnorm, "works": plain_works(net)}

def scaled():
    net = model()
    net.optimizer = keras.optimizers.LossScaleOptimizer(net.optimizer)
    for _ in range(2):
        quiet(net, (x, y), recipe={"loss_scale": 64.0})
    return {"factor": net.optimizer.loss_scale_factor, "works": plain_works(net)}

def mirrored():
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        net = model()
    recipe = {"strategy": "mirrored", "devices": 2, "execution": "xla", "accumulation": 2}
    results = [quiet(net, (x, y), recipe=recipe, batch_size=16) for _ in range(2)]
    works = plain_works(net)
    copies = [[part.numpy() for part in v._value.values] for v in net.trainable_variables]
    return {"works": works, "updates": [one.updates for one in results],
            "loss": [one.history["loss"] for one in results],
            "replicas": results[0].replica_count,
            "equal": all((a == b).all() for a, b in copies),
            "single": said(lambda: quiet(net, (x, y), recipe={"strategy": "single"}))}
"""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return fitted(tmp_path_factory.mktemp("fit"), MODEL_CASES, "afterwards", "scaled", "mirrored")


def test_the_model_goes_on_with_keras_fit_and_with_the_same_recipe(left: dict[str, Any]) -> None:
    case = left["afterwards"]
    assert case["works"]
    assert case["compile"], "jit_compile and steps_per_execution are as they were"
    assert (case["steps"], case["updates"]) == (8, [4, 4])
    assert case["clip"] == 1.0
    first, again = map(set, case["applied"])
    assert {"accumulation", "ema", "execution"} <= first == again


def test_a_model_of_two_replicas_composes_and_goes_back_to_keras(left: dict[str, Any]) -> None:
    case = left["mirrored"]
    assert case["replicas"] == 2
    assert case["updates"] == [2, 2]
    assert case["works"]
    assert case["equal"], "Keras' own step sums the gradients of the replicas again"
    assert "strategy cannot be set" in case["single"]
    assert "built in a MirroredStrategy of 2" in case["single"]


def test_a_fixed_loss_scale_can_be_asked_for_again(left: dict[str, Any]) -> None:
    assert left["scaled"] == {"factor": 64.0, "works": True}
