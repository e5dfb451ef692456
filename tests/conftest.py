"""What every test shares: one cache of traces and programs, and no GPU that is not asked for."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# The machine may be loaded: a slow example is no failure. No database: nothing is left behind.
settings.register_profile("tfdyno", deadline=None, database=None, max_examples=60)
settings.load_profile("tfdyno")
# A shell that starts the tests in the background has Ctrl-C ignored, and children inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give all tests, and the children they start, one cache that is not the user's."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # the workers' common parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFDYNO_CACHE", str(base / "tfdyno-cache"))
        patch.setenv("XDG_DATA_HOME", str(base / "data"))  # own prices, results, recalibration
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need a GPU where there is none, with the reason."""
    if shutil.which("nvidia-smi"):
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU: nvidia-smi is not installed"))
