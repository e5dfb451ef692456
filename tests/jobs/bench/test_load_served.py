"""Load on ``tfdyno serve`` itself; with ``hey``, where it is installed, as a second opinion."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tfdyno.jobs.bench.load import LoadRequest, load_test

if TYPE_CHECKING:
    from pathlib import Path

serving = pytest.importorskip("tests.served", exc_type=ImportError)
pytestmark = [pytest.mark.slow, pytest.mark.tf]
SECONDS_S = 3.0


def test_both_routes_answer_and_tell_their_batches(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    models = serving.small_models(tmp_path)
    with serving.running(
        str(models / "linear"), temporary=tmp_path_factory.mktemp("serve")
    ) as server:
        for url in (server.url, server.url.replace("/v1/", "/v2/")):
            found = load_test(LoadRequest(url=url, clients=16, seconds_s=SECONDS_S))
            figures = found.stages[0].figures
            assert not found.failed, found.faults
            assert figures.accepted > 500
            assert figures.mean_batch_rows > 1.0
            assert len(found.server.processes) == 1


@pytest.mark.skipif(not shutil.which("hey"), reason="hey is not installed")
def test_hey_counts_as_many_answers(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Three times in turns: machines that others use swing by a third and more."""
    models = serving.small_models(tmp_path)
    body = '{"instances":[[1.0,2.0,3.0]]}'
    data = tmp_path / "body.json"
    data.write_text(body)
    ours, its = [], []
    with serving.running(
        str(models / "linear"), temporary=tmp_path_factory.mktemp("serve")
    ) as server:
        request = LoadRequest(url=server.url, clients=16, seconds_s=SECONDS_S, data=data)
        for _ in range(3):
            ours.append(load_test(request).stages[0].figures.accepted_per_s)
            words = ["hey", "-z", f"{SECONDS_S:.0f}s", "-c", "16", "-m", "POST", "-d", body]
            words += ["-T", "application/json", f"{server.url}:predict"]
            told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            match = re.search(r"Requests/sec:\s+([\d.]+)", told)
            assert match
            assert "[200]" in told
            its.append(float(match[1]))
    assert sum(ours) / sum(its) == pytest.approx(1.0, abs=0.6)
