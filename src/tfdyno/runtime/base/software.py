"""TensorFlow as the child finds it: imported, its versions and its devices told."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import first_line

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.software import Software


def import_tensorflow(workload: Workload, command: str, verb: str) -> None:
    """Import TensorFlow and Keras for a workload.

    Args:
        workload: What is run.
        command: That needs them: ``bench``.
        verb: What it does with the workload: ``measure``.

    Raises:
        UsageError: One of them is missing, or the workload needs Keras 2.
    """
    tensorflow_for(command)
    from tfdyno.runtime.base.keras2 import adapt, is_keras2

    adapt(workload.reference)
    if is_keras2():
        what = f"{workload.reference} uses Keras 2, which tfdyno {command} does not {verb}"
        raise UsageError(what, remedy="use Keras 3 (TensorFlow 2.16 or newer)")


def tensorflow_for(command: str) -> None:
    """Import TensorFlow and Keras; raises ``UsageError`` where one of them is missing."""
    try:
        import keras  # noqa: F401  (timed where it is called)
        import tensorflow  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"tfdyno {command} needs TensorFlow",
            why=first_line(error),
            remedy="pip install 'tfdyno[tf]', or name an interpreter that has it with --python",
        ) from None


def software() -> Software:
    """Return versions, and the devices that TensorFlow has."""
    import keras
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    gpus = tf.config.list_physical_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    return {
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "python": platform.python_version(),
        "cuda": str(build.get("cuda_version", "")),
        "cudnn": str(build.get("cudnn_version", "")),
        "device": "gpu" if gpus else "cpu",
        "devices": [str(one.get("device_name", "a GPU")) for one in details] or ["CPU"],
    }
