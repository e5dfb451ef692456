"""The backend of Keras, for commands that know TensorFlow alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfdyno.cli.command import option
from tfdyno.cli.options import OneOf
from tfdyno.core.train.jax_plan import BACKENDS, refuse_jax

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload

BACKEND = option(
    "--backend", type=OneOf("backend", BACKENDS),
    help="Of Keras; only tensorflow is measured, also where the code names jax.",
)  # fmt: skip


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
