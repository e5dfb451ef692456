"""What SageMaker tells a container in a file, as variables that ``core.cluster`` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = Path("/opt/ml/input/config/resourceconfig.json")
"""The file in every container; the variables are set by SageMaker's training toolkit alone."""


def with_hosts(environment: Mapping[str, str], file: Path = FILE) -> dict[str, str]:
    """Add ``SM_HOSTS`` and ``SM_CURRENT_HOST``, where SageMaker's file tells them.

    Raises:
        UsageError: The file cannot be read.
    """
    if "SM_HOSTS" in environment or not file.exists():
        return dict(environment)
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        found = {"SM_HOSTS": json.dumps(told["hosts"]), "SM_CURRENT_HOST": told["current_host"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} cannot be read", why=str(error)) from None
    return {**environment, **found}
