"""What a preset of KerasHub is trained for: the class that does it, and the labels it takes."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import first_line
from tfdyno.runtime.workload.dataspec import Leaf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Model, Module, Value
    from tfdyno.core.choose.workload import HubModel, Workload

BASES = {
    "causal_lm": ("CausalLM",),
    "classifier": ("TextClassifier", "ImageClassifier"),
    "masked_lm": ("MaskedLM",),
    "segmenter": ("ImageSegmenter",),
    "detector": ("ObjectDetector",),
    "text_to_image": ("TextToImage",),
}
"""Classes of ``keras_hub.models`` that train for a task; a model has one of a kind at most."""
CLASSES = {"classifier": 2, "segmenter": 21, "detector": 80}
"""That are told apart where the data does not tell: as many as Pascal VOC and COCO have."""
BOXES = 100
"""Places for objects in an image, which a detector pads its labels to."""
TOKENS = 512
"""Of a sample, where the preprocessing of a model does not tell."""
MASKED = 96
"""Tokens of a sample that are guessed, where it does not tell."""
_LENGTHS = ("sequence_length", "decoder_sequence_length")
"""What preprocessing calls the length of a sample."""
_TENSORFLOW = ("tensorflow", "tensorflow_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a preset is trained for."""

    name: str
    """One of ``HUB_TASKS``."""
    model: Any
    """Its class of ``keras_hub.models``; of ``backbone``, that of the backbone."""

    @property
    def takes_classes(self) -> bool:
        """Whether the model is built for a number of classes."""
        return self.name in CLASSES

    @property
    def fewest_classes(self) -> int:
        """The fewest with which there is something to learn: a detector finds one, or nothing."""
        return 1 if self.name == "detector" else 2

    @property
    def writes(self) -> bool:
        """Whether its labels are the text itself."""
        return self.name in ("causal_lm", "masked_lm")


def keras_hub_models(reference: str) -> Module:
    """Import ``keras_hub.models``; raises ``UsageError`` where that is not possible."""
    if find_spec("keras_hub") is None:
        raise UsageError(
            f"{reference} needs KerasHub",
            why=f"the package keras-hub is not installed for {sys.executable}",
            remedy="pip install 'tfdyno[hub]', or name an interpreter that has it with --python",
        )
    try:
        with _without_tensorflow():
            return importlib.import_module("keras_hub").models
    except ImportError as error:
        raise UsageError(
            "KerasHub is installed but cannot be imported",
            why=first_line(error), remedy="pip install 'tfdyno[hub]'",
        ) from None  # fmt: skip


@contextlib.contextmanager
def _without_tensorflow() -> Iterator[None]:
    """Let KerasHub find no TensorFlow on JAX: it prepares text by it, which needs 3 s to import."""
    import keras

    on_jax = keras.backend.backend() == "jax"
    hidden = [name for name in _TENSORFLOW if on_jax and name not in sys.modules]
    modules: Any = sys.modules
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]


def task_of(workload: Workload) -> Task:
    """Return the task that is asked for, or the first that KerasHub has for the model.

    Raises:
        UsageError: KerasHub is not installed, or has no such model or task for it.
    """
    assert workload.hub
    models = keras_hub_models(workload.reference)
    backbone = getattr(models, workload.hub.backbone, None)
    if backbone is None:
        raise unlike(workload, f"it has no {workload.hub.backbone}")
    asked = workload.hub.fine_tune.task
    found = {
        task: one
        for task, names in BASES.items()
        for one in vars(models).values()
        if getattr(one, "backbone_cls", None) is backbone
        and issubclass(one, tuple(getattr(models, name) for name in names))
    }
    if workload.mode == "infer":
        found["backbone"] = backbone
    chosen = asked or next(iter(found), "")
    if chosen in found:
        return Task(name=chosen, model=found[chosen])
    if chosen == "backbone":
        raise UsageError(
            f"a backbone of {workload.reference} is not trained by itself",
            remedy="give --mode infer, or another --task",
        )
    raise UsageError(
        f"KerasHub has no {asked or 'task'} for {workload.reference}"
        + ("" if asked else f" among {', '.join(BASES)}"),
        remedy=f"give --task {next(iter(found))}" if found
        else "give a script that trains it, or --mode infer for its features",
    )  # fmt: skip


def labels_of(model: Model, hub: HubModel, task: Task) -> tuple[Any, Any]:
    """Return what a sample's labels and their weights are, as leaves.

    They are what KerasHub's own preprocessing makes, or what its losses take where it makes none.
    """
    if task.name == "causal_lm":
        length = length_of(hub, task)
        tokens = Leaf(shape=(length,), dtype="int32", name="next_token_ids")
        return tokens, Leaf(shape=(length,), dtype="bool")
    if task.name == "masked_lm":
        masked = masked_of(hub, task)
        guessed = Leaf(shape=(masked,), dtype="int32", name="masked_token_ids")
        return guessed, Leaf(shape=(masked,), dtype="float32")
    if task.name == "detector":
        boxes = Leaf(shape=(BOXES, 4), dtype="float32", name="boxes")
        return {"boxes": boxes, "labels": Leaf(shape=(BOXES,), dtype="int32", name="labels")}, None
    if task.name in ("segmenter", "text_to_image"):
        sizes = tuple(model.output.shape[1:])
        name = "mask" if task.name == "segmenter" else "velocity"
        return Leaf(shape=sizes, dtype="float32", name=name), None
    return Leaf(shape=(), dtype="int32", name="label"), None


def length_of(hub: HubModel, task: Task) -> int:
    """Return the length to which KerasHub cuts and pads, as far as the model goes, or the named."""
    if hub.fine_tune.sequence_length:
        return hub.fine_tune.sequence_length
    usual = _default_of(task, _LENGTHS, TOKENS)
    return min(filter(None, (usual, hub.longest)))


def masked_of(hub: HubModel, task: Task) -> int:
    """Return how many tokens of a sample are guessed."""
    usual = _default_of(task, ("mask_selection_length",), MASKED)
    return min(usual, length_of(hub, task))


def _default_of(task: Task, names: tuple[str, ...], otherwise: int) -> int:
    """Return what an argument of the preprocessing is where nobody names it."""
    preprocessor = getattr(task.model, "preprocessor_cls", None)
    if not preprocessor:
        return otherwise
    arguments = inspect.signature(preprocessor.__init__).parameters
    found = next((arguments[name] for name in names if name in arguments), None)
    usual: Value = found.default if found else otherwise
    return usual if isinstance(usual, int) else otherwise


def unlike(workload: Workload, why: str) -> UsageError:
    """Return the error for a model that the installed KerasHub cannot build."""
    version = importlib.import_module("keras_hub").__version__
    return UsageError(
        f"KerasHub {version} cannot build {workload.reference}",
        why=why, remedy="pip install 'tfdyno[hub]', whose version the presets are of",
    )  # fmt: skip
