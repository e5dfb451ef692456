"""The backend of Keras: as it is typed, as the code names it, or TensorFlow alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfdyno.cli.command import option
from tfdyno.cli.options import OneOf
from tfdyno.core.train.jax_plan import BACKENDS, backend_named, refuse_jax

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.software import Backend

BACKEND = option(
    "--backend", type=OneOf("backend", BACKENDS),
    help="Of Keras; only tensorflow is measured, also where the code names jax.",
)  # fmt: skip

EITHER = option(
    "--backend", type=OneOf("backend", BACKENDS),
    help="Of Keras.  [default: as the code or KERAS_BACKEND sets it, else tensorflow]",
)  # fmt: skip


def backend_of(workload: Workload, asked: str | None) -> tuple[Backend, str]:
    """Return the backend that a workload is measured on, and what is to be told of it.

    Args:
        workload: Whose code may name one.
        asked: As typed; None: no option names one.

    Raises:
        UsageError: The code or a variable names one that nothing is measured on.
    """
    if asked:
        return backend_named(asked), ""
    from tfdyno.jobs.train.backend import found_backend

    found = found_backend(workload, os.environ)
    return backend_named(found.name), found.note


def check_tensorflow(workload: Workload, backend: str | None, command: str) -> None:
    """Refuse what Keras would run on JAX; raises ``UsageError``.

    Args:
        workload: Whose code may name it.
        backend: As typed; None: what the code or the variables name.
        command: That knows TensorFlow alone.
    """
    from tfdyno.jobs.train.backend import found_backend

    if (backend or found_backend(workload, os.environ).name) == "jax":
        refuse_jax(command)
