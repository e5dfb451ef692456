"""Say which extra is missing before anything fails in the middle."""

from __future__ import annotations

import importlib.util

from tfdyno.core.base.errors import UsageError


def needs(module: str, extra: str) -> None:
    """Refuse where a package is not installed; raises ``UsageError``."""
    if importlib.util.find_spec(module) is None:
        raise UsageError(
            f"this needs the package {module.replace('_', '-')}",
            remedy=f"pip install 'tfdyno[{extra}]'",
        )
