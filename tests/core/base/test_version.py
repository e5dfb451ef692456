from __future__ import annotations

from pathlib import Path

import tfdyno
from tfdyno.core.base.version import PACKAGE, VERSION


def test_the_package_and_its_release_are_those_that_users_see() -> None:
    assert tfdyno.__version__ == VERSION
    assert Path(tfdyno.__file__).parent == PACKAGE
