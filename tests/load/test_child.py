from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.load_servers import serving

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.load import LoadPlan
from tfdyno.core.messages.load import LoadServer
from tfdyno.load.child import handle


def request(url: str, **changes: Any) -> LoadServer:
    plan = LoadPlan(clients=2, seconds_s=0.3, warmup_s=0.1, timeout_s=2.0)
    return LoadServer(url=url, plan=plan, **changes)


def test_the_result_has_the_server_and_every_request() -> None:
    with serving(work_s=0.002) as origin:
        found = handle(request(f"{origin}/v1/models/m"), lambda _stage: None)
    run = found.run
    assert found.server.inputs == ("x float32[-1,4]",)
    assert len(found.server.processes) == 1
    assert len(run.start_s) == len(run.latency_s) == len(run.codes) > 20
    assert set(run.codes) == {200}
    assert (run.faults, run.stopped) == ((), False)
    assert run.length_s == pytest.approx(0.4, abs=0.1)


def test_nobody_at_the_port_is_told() -> None:
    with pytest.raises(UsageError, match="no server answers"):
        handle(request("http://127.0.0.1:9/v1/models/m"), lambda _stage: None)


def test_an_authority_that_cannot_be_read_is_told() -> None:
    with pytest.raises(UsageError, match="cannot read /nowhere"):
        handle(request("https://127.0.0.1:9/v1/models/m", ca=Path("/nowhere")), lambda _stage: None)
