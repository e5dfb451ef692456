"""Child process: a .keras file or a function that returns a model, as a .tflite file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.messages.child import Nothing
from tfdyno.core.messages.litert import MAKE_LITERT
from tfdyno.process import child
from tfdyno.process.failure import Declined, first_line, user_code

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model
    from tfdyno.core.messages.litert import MakeLitert


def handle(request: MakeLitert, progress: child.Progress) -> Nothing:
    """Convert one model to floats.

    Raises:
        UsageError: The model cannot be loaded, or LiteRT lacks an operation of it.
        ToolError: The converter failed.
    """
    needs("tensorflow", "tf")
    needs("ai_edge_litert", "export")
    progress("importing TensorFlow")
    from tfdyno.runtime.litert.convert import convert

    progress(f"loading {request.reference}")
    try:
        model = _model(request.reference, unsafe=request.unsafe)
    except Declined as error:  # there is no other path to try here
        raise UsageError(error.what, why=error.why, remedy=error.remedy) from None
    progress("converting it for LiteRT")
    convert(model, kind="litert", samples=None, target=request.target)
    return Nothing()


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


def needs(module: str, extra: str) -> None:
    """Refuse where a package is not installed; raises ``UsageError``."""
    if importlib.util.find_spec(module) is None:
        raise UsageError(
            f"this needs the package {module.replace('_', '-')}",
            remedy=f"pip install 'tfdyno[{extra}]'",
        )


if __name__ == "__main__":
    child.leave(child.serve(handle, MAKE_LITERT))
