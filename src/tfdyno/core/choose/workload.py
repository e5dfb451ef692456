"""What the user trains or serves, and what tracing it found."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError

Mode = Literal["train", "infer"]
WorkloadKind = Literal[
    "script", "function", "keras_file", "application", "task", "preset", "step_function"
]
TensorRole = Literal[
    "weight", "state", "optimizer", "input", "target", "sample_weight", "constant", "other"
]

OTHER_FITS = "The script calls fit in "
"""What the warning begins with that a trace is of one call among several."""
NO_FIT = "has no call {number} of fit"
"""What the error ends with where a script goes to its end without so many calls."""


GenerationStep = Literal["", "prefill", "token", "text", "denoise", "image"]
"""Of a text: ``prefill`` fills the cache from the prompt, ``token`` makes one more token with it.
Of an image: ``text`` encodes the prompts, ``denoise`` takes one step of diffusion, ``image`` makes
pixels of what is left."""
HUB_PREFIX = "keras_hub:"
"""What a model of KerasHub is named with: a preset's name, or its folder."""
HUB_TASKS = (
    "causal_lm", "classifier", "masked_lm", "segmenter", "detector", "text_to_image", "backbone",
)  # fmt: skip
"""What a preset is trained for; ``backbone``: nothing, its features are what is wanted."""
QUANTIZE_MODES = ("int8", "int4", "float8")
"""Modes of Keras' ``quantize`` that ask for no data, and whose values a trace need not compute."""

TEXT_FILES = (".txt", ".csv", ".tsv", ".jsonl")
"""Endings of the files of text that a preset is trained on."""


def is_text_file(data: str) -> bool:
    """Return whether ``--data`` names a file of text rather than a function."""
    return data.endswith(TEXT_FILES)


_BY_SAMPLES = ("gptq", "awq")
"""Modes of Keras' ``quantize`` that round by what samples make of each layer."""


def quantize_mode(text: str) -> str:
    """Return a mode of quantizing that a trace can follow; raises ``UsageError`` for another."""
    if text.lower() in _BY_SAMPLES:
        raise UsageError(
            f"quantize mode '{text}' is not one that a trace can follow",
            why="it rounds weights by samples of text, and a trace computes no values",
            remedy="give int4: its weights take as many bits",
        )
    return settings.one_of(text, QUANTIZE_MODES, "quantize mode")


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTune:
    """How a preset of KerasHub is trained."""

    task: str = ""
    """One of ``HUB_TASKS``; empty: the first of them that KerasHub has for the model."""
    sequence_length: int = 0
    """Tokens of a sample; 0: as many as KerasHub's own preprocessing gives, if the model takes
    them."""
    lora_rank: int = 0
    """Width of the adapters, which alone are trained then; 0: every weight is."""
    quantize: str = ""
    """One of ``QUANTIZE_MODES``; empty: weights stay what the precision makes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubModel:
    """A model of KerasHub by its configuration, which is all that a trace needs of a preset."""

    backbone: str
    """``GPT2Backbone``, a class of ``keras_hub.models``."""
    config: str
    """Arguments of the class as JSON."""
    longest: int
    """Tokens of the longest sample that it takes; 0: it reads no text."""
    fine_tune: FineTune
    generation: GenerationStep = ""
    """The step of generating that is meant; empty: the model as it is trained or called."""
    cache_tokens: int = 0
    """Of a text: places of the cache of keys and values, prompt and new tokens together."""
    guidance: bool = True
    """Of an image: whether each step is guided by a second prompt, which doubles its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A reference to a model and how it is run; the batch size is not part of it."""

    reference: str
    """The workload as typed: ``train.py``, ``file.py:function``, ``model.keras``,
    ``keras:ResNet50``, ``task:bert-base``, ``keras_hub:gpt2_base_en``."""
    kind: WorkloadKind
    mode: Mode = "train"
    precision: str = ""
    """Keras dtype policy to force (float32, mixed_float16, ...); empty: the script's own."""
    input_shapes: tuple[tuple[int, ...], ...] = ()
    """Shapes without the batch for inputs with unknown dimensions, in order."""
    input_spec: tuple[str, ...] = ()
    """The arguments of a step function as ``dtype[batch,224,224,3]``, in order."""
    script_arguments: tuple[str, ...] = ()
    fit_number: int = 1
    """Which call of ``fit`` in a script is meant."""
    python: str = ""
    """Interpreter that runs the user's code; empty: the one that runs tfdyno."""
    allow_unsafe: bool = False
    """Whether a ``.keras`` file with a lambda may be loaded."""
    optimizer: str = ""
    """Keras optimizer to take instead, which learns differently; empty: the workload's own."""
    remat: str = ""
    """What is computed again in the backward pass, as a recipe says it; empty: nothing."""
    hub: HubModel | None = None
    """What ``keras_hub:…`` names; None: it is another kind."""
    software: str = ""
    """Release that answers are for (``tensorflow 2.15``, ``jax``); empty: the one that is installed
    where the code runs, else the newest."""

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits that change when any field changes."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]

    @property
    def has_no_data(self) -> bool:
        """Whether it is known to bring none: a model alone, or a step without a training."""
        return self.kind in ("application", "keras_file", "step_function", "preset")

    @property
    def task(self) -> str:
        """Name of a standard task; empty: it is none."""
        return self.reference.removeprefix("task:") if self.kind == "task" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """An argument of the step: shape as traced (batch included), Keras dtype name."""

    name: str
    role: TensorRole
    shape: tuple[int, ...]
    dtype: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What a call of ``fit`` evaluates between its epochs."""

    samples: int | None
    """Samples of one pass; 0: it validates nothing. None: its length cannot be read."""
    every_epochs: int = 1
    in_epochs: tuple[int, ...] = ()
    """Epochs, counted from 1, after which it validates; empty: after every ``every_epochs``."""

    def passes(self, epochs: int) -> int:
        """Return how often it validates in so many epochs."""
        if not self.samples:
            return 0
        named = sum(1 for epoch in set(self.in_epochs) if 1 <= epoch <= epochs)
        return named if self.in_epochs else epochs // self.every_epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """How often a callback of ``fit`` saves the model."""

    every_batches: int = 0
    """0: after each epoch."""
    only_best: bool = False
    """Whether only what is better than before is kept."""

    def times(self, *, epochs: int, steps: int) -> int:
        """Return how often it saves at the most in so many epochs, which are so many steps."""
        return steps // self.every_batches if self.every_batches else epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One real step of a workload as StableHLO, without weights, at the traced batch."""

    workload: Workload
    title: str
    """The model's own name: ``resnet50``."""
    batch_size: int
    """The batch the step was traced at."""
    marker: int
    """The prime in ``batch_size`` that marks what grows with the batch; 0: no scaling possible."""
    script_batch_size: int
    """The batch that the script itself uses; 0 when it names none."""
    policy: str
    """Keras dtype policy of the traced model."""
    path: Literal["jax", "tensorflow"]
    path_reason: str
    loss: str
    optimizer: str
    execution: Literal["xla", "graph"]
    """What Keras itself would do with this model: jit or not."""
    parameter_count: int
    trainable_parameter_count: int
    tensors: tuple[TensorSpec, ...]
    stablehlo_sha256: str
    seconds_s: float
    script_seconds_s: float
    """Time the user's own code took before the model was ready."""
    versions: dict[str, str]
    """keras, jax, tensorflow, python."""
    samples_per_epoch: int = 0
    """Length of the dataset that ``fit`` was given; 0 when unknown."""
    epochs: int = 0
    validation: Validation | None = None
    """None: no call of ``fit`` was seen."""
    savings: tuple[Saving, ...] = ()
    """Of Keras' own callbacks."""
    warnings: tuple[str, ...] = ()
    cudnn_layers: tuple[str, ...] = ()
    """Recurrent layers that TensorFlow hands to cuDNN on a GPU; the traced step has loops."""
    outside_xla: tuple[str, ...] = ()
    """Operations of TensorFlow that XLA does not have; the traced step is without them."""
