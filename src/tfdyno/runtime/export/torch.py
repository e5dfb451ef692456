"""The ``.keras`` file of an export under Keras' PyTorch backend, compared. Runs as a child.

Needs Keras, PyTorch and numpy; the interpreter need not have TensorFlow.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.process.child import Progress, Request, leave, serve
from tfdyno.process.failure import first_line
from tfdyno.runtime.export.compare import Judge, filled

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model

STATE = "state_dict.pt"
REMEDY = "write its own layers with keras.ops, or export to onnx"


def handle(request: Request, progress: Progress) -> dict[str, Any]:
    """Load the model, run the kept inputs through it, and keep its weights as a ``state_dict``.

    Args:
        request: ``folder`` (of the export), ``kept`` (inputs and outputs), ``order`` (the names
            of the inputs as the model takes them), ``outputs`` (names), ``judged`` and
            ``amounts`` of them, ``batch`` (rows that the model takes, 0: any).
        progress: Called with every stage.

    Raises:
        UsageError: PyTorch or Keras is missing, or the model does not load on it.
    """
    os.environ["KERAS_BACKEND"] = "torch"
    progress("importing PyTorch")
    try:
        import torch
    except ImportError:
        raise UsageError(
            "export to torch needs PyTorch",
            why="this interpreter has none",
            remedy="name one that has it and Keras with --python, or export to onnx",
        ) from None
    import keras
    import numpy as np

    progress("loading the model on PyTorch")
    folder, kept = Path(request["folder"]), Path(request["kept"])
    try:
        model = keras.saving.load_model(folder / "model.keras", compile=False, safe_mode=True)
    except Exception as error:
        why = first_line(error)
        what = "the model does not load on Keras' PyTorch backend"
        raise UsageError(what, why=why, remedy=REMEDY) from None
    given, expected, truth = (
        dict(np.load(kept / f"{name}.npz")) for name in ("inputs", "outputs", "truth")
    )
    judge = Judge(
        tuple(request["outputs"]), request["judged"], truth.get("classes"), request["amounts"]
    )
    progress("comparing on PyTorch")
    rows = len(next(iter(given.values())))
    size = request["batch"]

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        return _outputs(model, [torch.from_numpy(inputs[n]) for n in request["order"]], request)

    with torch.no_grad():
        try:
            if not size:
                judge.add(0, expected, run(given))
            for first in range(0, rows, size) if size else ():
                part, other = ({n: a[first : first + size] for n, a in one.items()}
                               for one in (given, expected))  # fmt: skip
                judge.add(first, other, filled(run, size)(part))
        except TfdynoError:
            raise
        except Exception as error:
            why = first_line(error)
            raise UsageError("the model does not run on PyTorch", why=why, remedy=REMEDY) from None
    accuracy = judge.accuracy()
    torch.save(model.state_dict(), folder / STATE)
    return {
        "differences": [asdict(one) for one in judge.differences()],
        "accuracy": asdict(accuracy) if accuracy else None,
        "runner": f"Keras {keras.__version__} on PyTorch {torch.__version__}",
        "rows": rows,
    }


def _outputs(model: Model, tensors: list[Any], request: Request) -> dict[str, Any]:
    from keras import tree

    structure = getattr(model, "_inputs_struct", None)
    if structure is not None and len(tensors) > 1:
        arguments = tree.pack_sequence_as(structure, tensors)
    else:
        arguments = tensors[0] if len(tensors) == 1 else tensors
    if isinstance(structure, dict) and len(tensors) == 1:
        arguments = tree.pack_sequence_as(structure, tensors)
    flat = tree.flatten(model(arguments, training=False))
    arrays = [one.detach().cpu().numpy() for one in flat]
    return dict(zip(request["outputs"], arrays, strict=True))


if __name__ == "__main__":
    leave(serve(handle))
