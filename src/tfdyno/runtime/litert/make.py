"""Child process: a .keras file or a function that returns a model, as a .tflite file.

Request: ``reference`` (path or ``file.py:function``), ``target`` (path) and ``unsafe``.
Result: what ``export_litert.convert`` says.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.process import child
from tfdyno.process.failure import Declined, first_line, user_code
from tfdyno.runtime.litert.needs import needs

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model


def handle(request: child.Request, progress: child.Progress) -> dict[str, Any]:
    """Convert one model to floats.

    Raises:
        UsageError: The model cannot be loaded, or LiteRT lacks an operation of it.
        ToolError: The converter failed.
    """
    needs("tensorflow", "tf")
    needs("ai_edge_litert", "export")
    progress("importing TensorFlow")
    from tfdyno.runtime.litert.convert import convert

    reference = request["reference"]
    progress(f"loading {reference}")
    try:
        model = _model(reference, unsafe=bool(request["unsafe"]))
    except Declined as error:  # there is no other path to try here
        raise UsageError(error.what, why=error.why, remedy=error.remedy) from None
    progress("converting it for LiteRT")
    return convert(model, kind="litert", samples=None, target=Path(request["target"]))


def _model(reference: str, *, unsafe: bool) -> Model:
    import keras

    if reference.endswith(".keras"):
        from tfdyno.runtime.workload.kerasfile import load_config

        load_config(Path(reference), allow_unsafe=unsafe)  # says in words what is wrong with it
        try:
            return keras.saving.load_model(reference, compile=False, safe_mode=not unsafe)
        except Exception as error:
            raise UsageError(f"{reference} cannot be loaded", why=first_line(error)) from None
    from tfdyno.runtime.workload.workloads import function_of

    with user_code(reference):
        made = function_of(reference)()
    model = made[0] if isinstance(made, tuple) and made else made
    if not isinstance(model, keras.Model):
        raise UsageError(
            f"{reference} returned a {type(made).__name__}",
            remedy="let it return the model",
        )
    return model


if __name__ == "__main__":
    child.leave(child.serve(handle))
