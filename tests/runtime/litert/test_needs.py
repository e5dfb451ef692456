"""A missing package is told with the extra that brings it."""

from __future__ import annotations

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.litert.make import needs


def test_a_missing_package_names_its_extra() -> None:
    needs("numpy", "export")
    with pytest.raises(UsageError, match=r"package no-such-thing; pip install 'tfdyno\[export\]'"):
        needs("no_such_thing", "export")
