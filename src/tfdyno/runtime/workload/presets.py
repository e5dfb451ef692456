"""A preset of KerasHub as a compiled model without weights, and the batch that it is trained on."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.keras_internals import output_spec
from tfdyno.runtime.workload.dataspec import DataSpec, Leaf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Model, Module, Tensor, Value
    from tfdyno.core.choose.workload import FineTune, HubModel, Workload

TASKS = {"causal_lm": ("CausalLM",), "classifier": ("TextClassifier", "ImageClassifier")}
"""Classes of ``keras_hub.models`` that train for a task; a model has one of a kind at most."""
CLASSES = 2
"""Of a classifier."""
TOKENS = 512
"""Of a sample, where the preprocessing of a model does not tell."""
_LENGTHS = ("sequence_length", "decoder_sequence_length")
"""What preprocessing calls that length."""
RATE = 5e-5
_NOT_TRAINED = ("int8", "int4")
"""Modes of ``quantize`` whose kernels have no gradient."""
STEPS = {"prefill": "filling the cache", "token": "one token"}
_TENSORFLOW = ("tensorflow", "tensorflow_text")


def preset(workload: Workload) -> tuple[Any, str, DataSpec]:
    """Return the compiled model of a preset, its title, and the shapes of a batch.

    Raises:
        UsageError: KerasHub is not installed, has no such model, or cannot build it.
    """
    hub = _hub(workload)
    task = task_class(workload)
    try:
        model = _built(hub, task)
    except Exception as error:
        raise _unlike(workload, f"{type(error).__name__}: {first_line(error)}") from None
    if hub.fine_tune.lora_rank and not model.backbone.trainable_variables:
        raise UsageError(
            f"--lora trains nothing of {workload.reference}",
            why="KerasHub finds no layer of it that it adapts",
            remedy="leave --lora out, or give a script that names layers to enable_lora",
        )
    title = workload.reference.partition(":")[2] + _how(hub.fine_tune)
    if hub.generation:
        step, data = _generation_step(model, workload)
        return step, f"{title}, {STEPS[hub.generation]}", data
    return model, title, _batch(model, hub, task)


def preset_notes(workload: Workload, data: DataSpec | None) -> list[str]:
    """Return what was assumed of the training of a preset, as sentences."""
    chosen = _hub(workload).fine_tune
    notes: list[str] = []
    if _hub(workload).generation:
        return notes
    lengths = [size for leaf in _text(data) for size in leaf.shape[:1] if size] if data else []
    if not chosen.sequence_length and lengths:
        length = f"{max(lengths):,} tokens, as KerasHub cuts them"
        notes.append(f"Assumed samples of {length}; --seq names another length.")
    if workload.mode == "infer":
        return notes
    notes.append("Assumed AdamW.")
    if chosen.quantize in _NOT_TRAINED and not chosen.lora_rank:
        what = f"Weights in {chosen.quantize} are not trained"
        notes.append(f"{what}: --lora trains adapters beside them.")
    return notes


def _hub(workload: Workload) -> HubModel:
    assert workload.hub
    return workload.hub


def _models(reference: str) -> Module:
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


def task_class(workload: Workload) -> Value:
    """Return the class that trains this preset for the task, or for what there is.

    Raises:
        UsageError: KerasHub is not installed, or has no such model or task for it.
    """
    models = _models(workload.reference)
    backbone = getattr(models, _hub(workload).backbone, None)
    if backbone is None:
        raise _unlike(workload, f"it has no {_hub(workload).backbone}")
    asked = _hub(workload).fine_tune.task
    found = {
        task: one
        for task, names in TASKS.items()
        for one in vars(models).values()
        if getattr(one, "backbone_cls", None) is backbone
        and issubclass(one, tuple(getattr(models, name) for name in names))
    }
    chosen = asked or next(iter(found), "")
    if chosen in found:
        return found[chosen]
    raise UsageError(
        f"KerasHub has no {asked or 'task'} for {workload.reference}"
        + ("" if asked else f" among {', '.join(TASKS)}"),
        remedy=f"give --task {next(iter(found))}" if found else "give a script that trains it",
    )


def _built(hub: HubModel, task: Value) -> Value:
    classes = {} if is_causal(task) else {"num_classes": CLASSES}
    backbone = task.backbone_cls.from_config(json.loads(hub.config))
    return made_ready(task(backbone=backbone, preprocessor=None, **classes), hub.fine_tune)


def made_ready(model: Model, chosen: FineTune) -> Model:
    """Quantize, add adapters and compile, in the order in which KerasHub's guides do."""
    import keras

    if chosen.quantize:
        model.quantize(chosen.quantize)
    if chosen.lora_rank:
        model.backbone.enable_lora(chosen.lora_rank)
    model.compile(optimizer=keras.optimizers.AdamW(RATE))
    return model


def _generation_step(model: Model, workload: Workload) -> tuple[Model, DataSpec]:
    """Return a step of ``generate`` as a model of its own, and its batch.

    KerasHub pads the prompt to the whole length, and fills the cache for all of it.

    Raises:
        UsageError: The model generates no text, or keeps another kind of cache.
    """
    import keras

    hub = _hub(workload)
    prompt = keras.KerasTensor((1, hub.cache_tokens), "int32")
    try:
        _, cache = output_spec(model._build_cache, prompt)
        shape, dtype = cache.shape[1:], str(cache.dtype)
    except (AttributeError, TypeError, ValueError):
        raise UsageError(
            f"how {workload.reference} generates text is not known",
            why="it has no cache of keys and values as other models of KerasHub have",
            remedy="leave --prompt out: the forward pass of a whole sample is told then",
        ) from None

    class Step(keras.Model):
        """One call of what ``generate`` repeats."""

        def __init__(self) -> None:
            super().__init__(dtype=model.dtype_policy)
            self.language_model = model
            self.built = True

        def call(self, given: Value) -> Value:
            if hub.generation == "prefill":
                return model._build_cache(given["token_ids"])
            last = hub.cache_tokens - 1
            logits, _, kept = model.call_with_cache(given["token_ids"], given["cache"], last)
            return logits, kept

    tokens = hub.cache_tokens if hub.generation == "prefill" else 1
    x = {"token_ids": Leaf(shape=(tokens,), dtype="int32", name="token_ids")}
    if hub.generation == "token":
        x["cache"] = Leaf(shape=shape, dtype=dtype, name="cache")
    return Step(), DataSpec(x=x)


def is_causal(task: Value) -> bool:
    """Return whether a class of KerasHub learns to go on with a text."""
    models = importlib.import_module("keras_hub").models
    return issubclass(task, models.CausalLM)


def _how(chosen: FineTune) -> str:
    """Return what makes the model another than the preset's own, for its title."""
    parts = [f"LoRA {chosen.lora_rank}"] if chosen.lora_rank else []
    parts += [chosen.quantize] if chosen.quantize else []
    return f" ({', '.join(parts)})" if parts else ""


def _batch(model: Model, hub: HubModel, task: Value) -> DataSpec:
    """Return what KerasHub's preprocessing gives ``fit``: tokens, labels and their weights."""
    length = hub.fine_tune.sequence_length or _own_length(hub, task)

    def leaf(tensor: Tensor) -> Leaf:
        sizes, dtype = tuple(tensor.shape[1:]), str(tensor.dtype)
        if "float" in dtype and None in sizes:
            raise UsageError(
                f"{task.__name__} takes {tensor.name} of any number",
                why="KerasHub does not tell how many a sample has",
                remedy="name its preset for text alone, or give a script that trains it",
            )
        if "float" not in dtype:
            sizes = tuple(length if size is None else size for size in sizes)
        return Leaf(shape=sizes, dtype=dtype, name=tensor.name)

    given = model.input
    x = {key: leaf(one) for key, one in given.items()} if isinstance(given, dict) else leaf(given)
    if not is_causal(task):
        return DataSpec(x=x, y=Leaf(shape=(), dtype="int32", name="label"))
    labels = Leaf(shape=(length,), dtype="int32", name="next_token_ids")
    return DataSpec(x=x, y=labels, sample_weight=Leaf(shape=(length,), dtype="bool"))


def _text(data: DataSpec) -> list[Leaf]:
    parts = data.x.values() if isinstance(data.x, dict) else (data.x,)
    return [leaf for leaf in parts if "float" not in leaf.dtype]


def _own_length(hub: HubModel, task: Value) -> int:
    """Return the length to which KerasHub cuts and pads, as far as the model goes."""
    usual: Any = TOKENS
    if task.preprocessor_cls:
        arguments = inspect.signature(task.preprocessor_cls.__init__).parameters
        names = (name for name in _LENGTHS if name in arguments)
        usual = getattr(arguments.get(next(names, "")), "default", TOKENS)
    return min(filter(None, (usual, hub.longest)))


def _unlike(workload: Workload, why: str) -> UsageError:
    version = importlib.import_module("keras_hub").__version__
    return UsageError(
        f"KerasHub {version} cannot build {workload.reference}",
        why=why, remedy="pip install 'tfdyno[hub]', whose version the presets are of",
    )  # fmt: skip
