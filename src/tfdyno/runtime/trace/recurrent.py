"""Recurrent layers that TensorFlow hands to cuDNN on a GPU, where the traced step has a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.runtime.base.keras_internals import all_layers

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Layer, Model

KINDS = ("LSTM", "GRU")
CUDNN_SETTINGS = {
    "activation": "tanh",
    "recurrent_activation": "sigmoid",
    "unroll": False,
    "use_bias": True,
    "reset_after": True,
}
"""What the kernels of cuDNN compute; a layer that differs in one of them runs as a loop."""


def recurrent_notes(model: Model) -> tuple[str, ...]:
    """Return one sentence if TensorFlow would replace loops of this model by cuDNN's kernels."""
    kinds = {type(layer).__name__ for layer in all_layers(model) if _by_cudnn(layer)}
    if not kinds:
        return ()
    names = " and ".join(sorted(kinds))
    return (
        f"TensorFlow runs {names} layers like these by cuDNN, and so the whole model without XLA; "
        "memory is that of the plain loop over the sequence.",
    )


def cudnn_layers(model: Model) -> tuple[str, ...]:
    """Return names of the layers whose loops TensorFlow would replace by cuDNN's kernels.

    Source:
        ``cudnn_ok`` of ``keras/src/backend/tensorflow/rnn.py``, ``inner_loop`` of
        ``keras/src/layers/rnn/lstm.py`` and ``gru.py``, Keras 3.15.
    """
    return tuple(layer.name for layer in all_layers(model) if _by_cudnn(layer))


def keeps_xla_off(model: Model) -> bool:
    """Return whether a layer makes Keras run the whole model without XLA on TensorFlow.

    Such a layer clears its ``supports_jit`` when it is made, also where dropout in its loop then
    keeps cuDNN out; ``jit_compile="auto"`` and ``True`` both become False.

    Source:
        ``model_supports_jit`` and ``jit_compile`` of ``keras/src/trainers/trainer.py``, Keras 3.15.
    """
    return any(_suits_cudnn(layer) for layer in all_layers(model))


def _by_cudnn(layer: Layer) -> bool:
    return _suits_cudnn(layer) and not layer.get_config().get("recurrent_dropout")


def _suits_cudnn(layer: Layer) -> bool:
    if type(layer).__name__ not in KINDS or getattr(layer, "use_cudnn", "auto") is False:
        return False
    settings = layer.get_config()
    return all(settings.get(name, wanted) == wanted for name, wanted in CUDNN_SETTINGS.items())
