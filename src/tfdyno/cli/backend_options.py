"""The backend of Keras: as it is typed, or as the code names it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfdyno.cli.command import option
from tfdyno.cli.options import OneOf
from tfdyno.core.base.settings import one_of
from tfdyno.core.train.jax_plan import BACKENDS, backend_named

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.software import Backend

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
        UsageError: There is no such backend, or nothing is measured on what the code or a variable
            names.
    """
    if asked:
        return backend_named(one_of(asked, BACKENDS, "backend")), ""
    from tfdyno.jobs.train.backend import found_backend

    found = found_backend(workload, os.environ)
    return backend_named(found.name), found.note
