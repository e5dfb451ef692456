"""Recurrent layers that TensorFlow hands to cuDNN on a GPU, where the traced step has a loop."""

from __future__ import annotations

from typing import Any

KINDS = ("LSTM", "GRU")
CUDNN_SETTINGS = {
    "activation": "tanh",
    "recurrent_activation": "sigmoid",
    "unroll": False,
    "use_bias": True,
    "reset_after": True,
    "recurrent_dropout": 0.0,
}
"""What the kernels of cuDNN compute; a layer that differs in one of them runs as a loop."""


def recurrent_notes(model: Any) -> tuple[str, ...]:  # noqa: ANN401
    """One sentence if TensorFlow would replace loops of this model by cuDNN's kernels.

    Source:
        ``cudnn_ok`` of ``keras/src/backend/tensorflow/rnn.py``, Keras 3.15.
    """
    kinds = {type(layer).__name__ for layer in model._flatten_layers() if _by_cudnn(layer)}
    if not kinds:
        return ()
    names = " and ".join(sorted(kinds))
    return (
        f"TensorFlow runs {names} layers like these by cuDNN and without XLA; counted here is the "
        "plain loop over the sequence, which takes longer.",
    )


def _by_cudnn(layer: Any) -> bool:  # noqa: ANN401
    if type(layer).__name__ not in KINDS or getattr(layer, "use_cudnn", "auto") is False:
        return False
    settings = layer.get_config()
    return all(settings.get(name, wanted) == wanted for name, wanted in CUDNN_SETTINGS.items())
