"""The ``.keras`` file of an export under Keras' PyTorch backend, compared. Runs as a child.

Needs Keras, PyTorch and numpy; the interpreter need not have TensorFlow.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.deploy.export import Verification
from tfdyno.core.messages.export import COMPARE_ON_TORCH
from tfdyno.process.child import Progress, leave, serve
from tfdyno.process.failure import first_line
from tfdyno.runtime.export.compare import Judge, filled

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model
    from tfdyno.core.messages.export import CompareOnTorch

STATE = "state_dict.pt"
REMEDY = "write its own layers with keras.ops, or export to onnx"


def handle(request: CompareOnTorch, progress: Progress) -> Verification:
    """Load the model, run the kept inputs through it, and keep its weights as a ``state_dict``.

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
    folder, kept, known = request.folder, request.kept, request.known
    try:
        model = keras.saving.load_model(folder / "model.keras", compile=False, safe_mode=True)
    except Exception as error:
        why = first_line(error)
        what = "the model does not load on Keras' PyTorch backend"
        raise UsageError(what, why=why, remedy=REMEDY) from None
    given, expected, truth = (
        dict(np.load(kept / f"{name}.npz")) for name in ("inputs", "outputs", "truth")
    )
    judge = Judge(request.outputs, known.judged, truth.get("classes"), known.amounts)
    progress("comparing on PyTorch")
    rows = len(next(iter(given.values())))
    size = known.batch or rows

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        tensors = [torch.from_numpy(inputs[name]) for name in request.inputs]
        return dict(zip(request.outputs, _outputs(model, tensors), strict=True))

    with torch.no_grad():
        try:
            for first in range(0, rows, size):
                part, other = ({n: a[first : first + size] for n, a in one.items()}
                               for one in (given, expected))  # fmt: skip
                judge.add(first, other, filled(run, size)(part))
        except TfdynoError:
            raise
        except Exception as error:
            why = first_line(error)
            raise UsageError("the model does not run on PyTorch", why=why, remedy=REMEDY) from None
    torch.save(model.state_dict(), folder / STATE)
    return Verification(
        data=known.data,
        rows=rows,
        runner=f"Keras {keras.__version__} on PyTorch {torch.__version__}",
        differences=judge.differences(),
        accuracy=judge.accuracy(),
    )


def _outputs(model: Model, tensors: list[Any]) -> list[Any]:
    from keras import tree

    structure = getattr(model, "_inputs_struct", None)
    if structure is not None and len(tensors) > 1:
        arguments = tree.pack_sequence_as(structure, tensors)
    else:
        arguments = tensors[0] if len(tensors) == 1 else tensors
    if isinstance(structure, dict) and len(tensors) == 1:
        arguments = tree.pack_sequence_as(structure, tensors)
    flat = tree.flatten(model(arguments, training=False))
    return [one.detach().cpu().numpy() for one in flat]


if __name__ == "__main__":
    leave(serve(handle, COMPARE_ON_TORCH))
