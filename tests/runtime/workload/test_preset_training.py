"""Presets of KerasHub trained by their folders, against KerasHub's own ``fit``."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import FineTune
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import RunSettings
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.train.train import Trained, TrainRequest, train

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(find_spec("keras_hub") is None, reason="KerasHub is not installed")

WHOLE = FineTune()
TEXTS = ["the rain in the area", "a train has a rather heavy trailer", "in the theater", "he is in"]
REVIEWS = (
    "text,label\nthe film was good,pos\nthe film was bad,neg\na good film,pos\na bad film,neg\n"
)
MAKE = """
import sys
import keras
import keras_hub

keras.utils.set_random_seed(7)
words = list("abcdefghilmnoprstuvwy") + [".", "\\u0120", "th", "he", "in"]
vocabulary = {word: number for number, word in enumerate(["<|endoftext|>", *words])}
sizes = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32, dropout=0.0)
models = keras_hub.models
tokens = models.GPT2Tokenizer(vocabulary=vocabulary, merges=["t h", "h e", "i n"])
cut = models.GPT2CausalLMPreprocessor(tokens, sequence_length=32)
body = models.GPT2Backbone(vocabulary_size=len(vocabulary), max_sequence_length=64, **sizes)
models.GPT2CausalLM(body, cut).save_to_preset("gpt2")
words = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the was a".split()
tokens = models.BertTokenizer(vocabulary=words)
cut = models.BertTextClassifierPreprocessor(tokens, sequence_length=16)
body = models.BertBackbone(vocabulary_size=len(words), max_sequence_length=32, **sizes)
models.BertTextClassifier(body, num_classes=3, preprocessor=cut).save_to_preset("bert")
"""
MAKE_SEEING = """
import keras
import keras_hub

keras.utils.set_random_seed(7)
models, size = keras_hub.models, (64, 64)
sizes = dict(num_layers=4, layerwise_num_heads=[1, 1, 1, 1], layerwise_sr_ratios=[8, 4, 2, 1])
sizes |= dict(max_drop_path_rate=0.0, layerwise_patch_sizes=[7, 3, 3, 3])
sizes |= dict(layerwise_strides=[4, 2, 2, 2], hidden_dims=[4, 8, 12, 16])
eye = models.MiTBackbone(layerwise_depths=[1, 1, 1, 1], image_shape=(*size, 3), **sizes)
body = models.SegFormerBackbone(image_encoder=eye, projection_filters=8)
scaled = keras_hub.layers.SegFormerImageConverter(image_size=size, scale=1 / 255)
cut = models.SegFormerImageSegmenterPreprocessor(scaled)
models.SegFormerImageSegmenter(body, num_classes=5, preprocessor=cut).save_to_preset("segformer")
sizes = dict(input_conv_filters=[64], input_conv_kernel_sizes=[7], block_type="basic_block")
sizes |= dict(stackwise_num_filters=[64, 64, 64, 64], stackwise_num_blocks=[1, 1, 1, 1])
eye = models.ResNetBackbone(stackwise_num_strides=[1, 2, 2, 2], image_shape=(*size, 3), **sizes)
body = models.RetinaNetBackbone(eye, min_level=3, max_level=5, use_p5=False, image_shape=(*size, 3))
scaled = keras_hub.layers.RetinaNetImageConverter(image_size=size, scale=1 / 255)
cut = models.RetinaNetObjectDetectorPreprocessor(scaled)
models.RetinaNetObjectDetector(body, num_classes=7, preprocessor=cut).save_to_preset("retinanet")
"""
SEEN = """
import numpy as np

draw = np.random.default_rng(3)
images = draw.uniform(0, 255, (4, 64, 64, 3)).astype("float32")

def masks():
    return images, np.eye(3, dtype="float32")[draw.integers(0, 3, (4, 64, 64))]

def boxes():
    corners = np.tile(np.array([8.0, 8.0, 40.0, 40.0], "float32"), (4, 2, 1))
    return images, {"boxes": corners, "labels": np.array([[0, 3]] * 4)}

def one():
    images, labels = boxes()
    return images, {**labels, "labels": np.zeros((4, 2), "int32")}

def words():
    return images, np.array(["cat"] * 4)
"""
PLAIN = '''
import json
import sys
import keras
import keras_hub

model = keras_hub.models.CausalLM.from_preset("gpt2")
model.preprocessor.sequence_length = 16
x, y, weights = model.preprocessor(open("texts.txt").read().splitlines())
model.preprocessor = None
model.compile(optimizer=keras.optimizers.AdamW(5e-5))
told = model.fit(x, y, sample_weight=weights, batch_size=4, epochs=3, verbose=0)
print(json.dumps(told.history["loss"]))
'''  # fmt: skip


def ran(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def presets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("presets")
    ran(MAKE, folder)
    (folder / "texts.txt").write_text("\n".join(TEXTS))
    (folder / "reviews.csv").write_text(REVIEWS)
    return folder


@pytest.fixture(autouse=True)
def _there(presets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(presets)


def trained(
    name: str, output: str, *, data: str = "texts.txt", epochs: int = 3, resume: bool = False,
    jax: bool = False, way: FineTune = WHOLE,
) -> Trained:  # fmt: skip
    workload = parse_reference(f"keras_hub:./{name}", fine_tune=way)
    asked = TrainRequest(
        workload=workload,
        recipe=Recipe(seed=1, batch_size=4),
        settings=RunSettings(output=output, epochs=epochs, resume=resume),
        given=frozenset({"epochs"}),
        data=data,
        jax=JaxPlan() if jax else None,
    )
    return train(asked)


def test_its_losses_are_those_of_kerashubs_own_fit_of_the_same_texts(presets: Path) -> None:
    plain = json.loads(ran(PLAIN, presets).splitlines()[-1])
    found = trained("gpt2", "whole", way=FineTune(sequence_length=16))
    assert found.outcome.history["loss"] == pytest.approx(plain, rel=1e-5)
    assert "4 texts in an epoch." in found.outcome.notes
    cut = "2 of 4 samples fill all 16 tokens; what is longer is cut."
    assert cut in found.outcome.notes


def test_adapters_go_on_after_an_end_as_if_there_had_been_none(presets: Path) -> None:
    way = FineTune(lora_rank=2, quantize="int8", sequence_length=16)
    trained("gpt2", "one", epochs=4, way=way)
    trained("gpt2", "two", epochs=2, way=way)
    trained("gpt2", "two", epochs=4, resume=True, way=way)
    weights = [weights_of(presets / name / "model.keras", presets) for name in ("one", "two")]
    assert weights[0].keys() == weights[1].keys()
    for name, value in weights[0].items():
        np.testing.assert_array_equal(value, weights[1][name], err_msg=name)
    with pytest.raises(UsageError, match="trained by --seq 16 --lora 2 --quantize int8, not by"):
        trained("gpt2", "two", resume=True, way=FineTune(lora_rank=2))


def weights_of(path: Path, folder: Path) -> dict[str, np.ndarray]:
    code = (
        "import sys, keras, keras_hub, numpy\n"
        f"model = keras.saving.load_model({str(path)!r})\n"
        "assert model.preprocessor is not None\n"
        "found = {w.path: keras.ops.convert_to_numpy(w) for w in model.weights}\n"
        f"numpy.savez({str(path.with_suffix('.npz'))!r}, **found)\n"
    )
    ran(code, folder)
    with np.load(path.with_suffix(".npz")) as kept:
        return {name: kept[name] for name in kept.files}


@pytest.mark.parametrize("jax", [False, True], ids=["tensorflow", "jax"])
def test_hidden_tokens_of_plain_texts_are_guessed(jax: bool) -> None:
    way = FineTune(task="masked_lm", sequence_length=16)
    found = trained("bert", f"hidden-{jax}", jax=jax, way=way)
    # One word of eleven is hidden in a text as short; the other 95 places weigh nothing.
    assert found.outcome.history["loss"][0] == pytest.approx(np.log(11) / 96, rel=0.2)
    drawn = "Which tokens are guessed is drawn once; each epoch guesses the same."
    assert drawn in found.outcome.notes


@pytest.fixture(scope="module")
def seeing(presets: Path) -> Path:
    ran(MAKE_SEEING, presets)
    (presets / "seen.py").write_text(SEEN)
    return presets


@pytest.mark.usefixtures("seeing")
@pytest.mark.parametrize(
    ("name", "data", "loss"),
    [("segformer", "masks", np.log(3)), ("retinanet", "boxes", None), ("retinanet", "one", None)],
)
def test_a_model_of_images_learns_the_classes_of_its_labels(
    name: str, data: str, loss: float | None
) -> None:
    found = trained(name, f"{name}-{data}", data=f"seen.py:{data}", epochs=2)
    first, second = found.outcome.history["loss"]
    if loss:
        assert first == pytest.approx(loss, rel=0.5)
    assert np.isfinite(second)


@pytest.mark.usefixtures("seeing")
@pytest.mark.parametrize(
    ("name", "told"),
    [("segformer", "labels as an array (images, height, width, classes) of 0 and 1"),
     ("retinanet", 'labels as {"boxes": (images, boxes, 4), "labels": (images, boxes)}')],
)  # fmt: skip
def test_labels_of_another_form_are_one_sentence(name: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        trained(name, f"{name}-refused", data="seen.py:words")
    assert told in str(error.value)


@pytest.mark.parametrize("jax", [False, True], ids=["tensorflow", "jax"])
def test_a_classifier_learns_as_many_classes_as_the_table_has(jax: bool) -> None:
    found = trained("bert", f"classes-{jax}", data="reviews.csv", jax=jax)
    assert "4 texts of 2 classes in an epoch: neg, pos." in found.outcome.notes
    assert found.outcome.history["loss"][0] == pytest.approx(np.log(2), rel=0.3)
    assert found.outcome.steps == 3


def test_a_function_gives_texts_and_labels_too(presets: Path) -> None:
    (presets / "own.py").write_text(
        "import numpy as np\n"
        "def data():\n"
        '    return ["a good film", "a bad film", "good", "bad"], np.array([1, 0, 1, 0])\n'
    )
    assert trained("bert", "function", data="own.py:data", epochs=1).outcome.steps == 1


def test_tokens_of_a_function_reach_the_model_as_they_are(presets: Path) -> None:
    (presets / "numbers.py").write_text(
        "import numpy as np\n"
        "def data():\n"
        "    tokens = np.arange(4 * 16).reshape(4, 16) % 20\n"
        '    return {"token_ids": tokens, "padding_mask": np.ones_like(tokens)}, tokens\n'
    )
    assert trained("gpt2", "numbers", data="numbers.py:data", epochs=1).outcome.steps == 1


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("bert", "texts.txt", "texts.txt cannot train keras_hub:./bert to tell classes apart: it "
                              "tells no classes; give a table with a column 'label'"),
        ("gpt2", "none.txt", "there is no file none.txt"),
        ("gpt2", "texts", "--data texts is not possible here; write --data with .txt, .csv"),
        ("gpt2", "", "keras_hub:./gpt2 brings no data, and train needs data; name some with "
                     "--data: .txt, .csv, .tsv, .jsonl or file.py:function."),
    ],
)  # fmt: skip
def test_data_that_does_not_fit_is_one_sentence(name: str, data: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        trained(name, "refused", data=data)
    assert told in str(error.value)


def test_weights_that_are_not_there_are_one_sentence(presets: Path) -> None:
    bare = presets / "bare"
    bare.mkdir()
    for name in ("config.json", "metadata.json"):
        (bare / name).write_bytes((presets / "gpt2" / name).read_bytes())
    with pytest.raises(UsageError) as error:
        trained("bare", "without")
    assert str(error.value).startswith("the weights of keras_hub:./bare cannot be loaded: ")
