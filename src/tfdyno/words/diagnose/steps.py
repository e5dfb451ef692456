"""Names of the parts of a step and of the classes of its operations."""

from __future__ import annotations

from tfdyno.words.base.language import ENGLISH, say, say_later, spoken

_PARTS = {
    "input": say_later("input||part of a step"),
    "host": say_later("host||part of a step"),
    "callback": say_later("callback"),
    "copy": say_later("copy||part of a step"),
    "compute": say_later("compute"),
    "communication": say_later("communication"),
    "launch": say_later("launch"),
    "retrace": say_later("retrace"),
    "validation": say_later("validation"),
    "checkpoint": say_later("checkpoint"),
    "unseen": say_later("unseen"),
}
_CLASSES = {
    "gemm": say_later("matrix products"),
    "conv": say_later("convolutions"),
    "elementwise": say_later("element by element"),
    "normalisation": say_later("normalisation"),
    "optimizer": say_later("optimizer update"),
    "reduction": say_later("sums and other reductions"),
    "data_movement": say_later("moving and reshaping"),
    "collective": say_later("collective||class of operations"),
    "random": say_later("random numbers"),
    "other": say_later("other||class of operations"),
}


def part_name(name: str) -> str:
    """Return a part of a split as tables name it: ``input``, in English as the data have it."""
    return say(_PARTS[name]) if name in _PARTS else name


def class_name(name: str) -> str:
    """Return a class of operations as tables name it: ``gemm``, in English as the data have it."""
    return name if spoken() == ENGLISH else class_words(name)


def class_words(name: str) -> str:
    """Return a class of operations as a person names it: ``matrix products``."""
    return say(_CLASSES[name]) if name in _CLASSES else name.replace("_", " ")
