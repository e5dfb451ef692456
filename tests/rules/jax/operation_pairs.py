"""Both sides of every row of the table of operations, computed: a child for each framework."""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ARRAYS = """
import numpy as np
rng = np.random.default_rng(7)
A, B = (rng.normal(size=(3, 4)).astype("float32") for _ in range(2))
A += 0.003  # no half to be rounded
BT, P, PR = B.T.copy(), np.abs(A) + 0.1, None
PR = P / P.sum(axis=1, keepdims=True)
T = rng.normal(size=(2, 3, 4)).astype("float32")
ZB, ZR = B * (B > 0), A * np.array([[1.0], [1.0], [0.0]], "float32")
M, M2, I = A > 0, B > 0, (A * 10).astype("int32")
J, J3, SEG = (np.array(one, "int32") for one in ([0, 2, 1, 0], [0, 2, 1], [0, 0, 1]))
Q = (T[0] @ T[0].T + 3 * np.eye(3)).astype("float32")
N = np.array([1.0, np.nan, np.inf], "float32")
C = (A + 1j * B).astype("complex64")
S, V, W = A[None], B[0], B[1]
L = np.eye(4, dtype="float32")[J3]
IM, SQ = (rng.normal(size=one).astype("float32") for one in ((2, 6, 6, 3), (2, 6, 3)))
F, F1 = (rng.normal(size=one).astype("float32") for one in ((3, 3, 3, 2), (3, 3, 2)))
P = P.clip(0.11, 1.8)
"""


def flat(value: object) -> list[object]:
    """Return the numbers of a tensor, or of a tuple of them, with their shape."""
    import numpy as np

    if isinstance(value, (list, tuple)) and any(hasattr(one, "dtype") for one in value):
        return [flat(one) for one in value]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    array = np.asarray(value)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    return [list(array.shape), np.nan_to_num(array.astype("float64"), posinf=9e9).ravel().tolist()]


def names(function: Callable[..., object]) -> list[str]:
    """Return the names of a function's arguments in their order."""
    return list(inspect.signature(function).parameters)


def main() -> None:
    """Read ``[key, expression]`` rows, print each one's numbers or what it raised."""
    warnings.simplefilter("ignore")
    import keras
    import numpy as np
    import tensorflow as tf

    known: dict[str, object] = {"tf": tf, "keras": keras, "names": names}
    exec(ARRAYS, known)
    for name, value in list(known.items()):
        if isinstance(value, np.ndarray):  # as a layer is given it: of the framework at hand
            known[name] = keras.ops.convert_to_tensor(value)
    for key, text in json.load(sys.stdin):
        try:
            told: object = flat(eval(text, known))
        except Exception as error:
            told = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps([key, told]), flush=True)


if __name__ == "__main__":
    main()
