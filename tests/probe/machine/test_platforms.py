from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.probe.base.host import Host
from tfdyno.probe.machine.platforms import macos, windows

if TYPE_CHECKING:
    from tests.probe.conftest import Build


@pytest.mark.parametrize(
    ("version", "release"),
    [("10.0.19045", "Windows 10"), ("10.0.22631", "Windows 11"), ("", "Windows")],
)
def test_windows_is_named_by_its_build(version: str, release: str) -> None:
    assert windows(Host(system="windows", version=version))["release"] == release


def test_macos_without_its_version_file_is_still_macos(build: Build) -> None:
    assert macos(build({}, system="macos"))["release"] == "macOS"
