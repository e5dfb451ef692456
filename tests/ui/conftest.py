from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests import chromium
from tests.ui.browsing import READY
from tests.ui.running import Running, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chromium import Page


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory, server: Running) -> Iterator[Page]:
    with chromium.page(tmp_path_factory.mktemp("browser")) as found:
        found.size(1180, 1000)
        found.open(server.url)
        found.wait(READY)
        yield found
        assert found.problems == []
