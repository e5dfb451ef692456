"""jobs/tune_ray: nodes measure beside each other, the study stays here, none of it is lost."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs import tune_ray_child
from tests.jobs.tune.test_tune import SMALL, same_losses
from tests.jobs.tune.test_tune_real import FIXED
from tests.jobs.tune.test_tune_real import SMALL as SCRIPT

from tfdyno.core.base.errors import Failure, ToolError, UsageError
from tfdyno.core.messages.bench import MeasureHere
from tfdyno.core.messages.tune import LOST, LookHere, NodeWork
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.tune._ray_worker import measure_here
from tfdyno.jobs.tune.ray import ray_nodes
from tfdyno.jobs.tune.request import NodeLost, TuneRequest
from tfdyno.jobs.tune.tune import tune

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.train.tuning import Tuning

ROOT = Path(__file__).parents[3]
HAS_RAY = importlib.util.find_spec("ray") is not None


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = os.pathsep.join((str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setattr("tfdyno.jobs.diagnose.same_losses.train", same_losses)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    (tmp_path / "law.json").write_text("{}")
    return tmp_path


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that are this machine."""
    monkeypatch.setattr("tfdyno.jobs.tune.ray.DRIVER", tune_ray_child.__name__)


def law(**numbers: object) -> None:
    Path("law.json").write_text(json.dumps(numbers))


def request(**fields: Any) -> TuneRequest:
    given: dict[str, Any] = {"trials": 6, "runs": 2, "folder": Path("out"), "named": SMALL,
                             **fields}  # fmt: skip
    return TuneRequest(workload=parse_reference("train.py"), **given)


def last(asked: TuneRequest, said: list[str] | None = None) -> Tuning:
    heard = said if said is not None else []
    *_, end = tune(asked, engine=ray_nodes(asked, progress=heard.append))
    return end


@pytest.mark.usefixtures("driver")
def test_equal_nodes_measure_beside_each_other_and_others_are_left_out() -> None:
    law(xla=0.5)
    said: list[str] = []
    told = last(request(keep_batch=True), said)
    assert told.engine == "ray"
    assert sum(one.ran for one in told.trials) == 4
    assert {one.where for one in told.trials if one.ran} == {"first", "second"}
    assert "left out, since they are other machines: larger" in said
    assert told.proof
    used = [json.loads(line) for line in Path("nodes.jsonl").read_text().splitlines()]
    assert set(used[-2 * told.proof.runs :]) == {"a"}  # both sides of the proof on one node
    assert told.proof.agreement
    assert Path("losses.jsonl").exists()  # which the nodes write, and nobody else


@pytest.mark.usefixtures("driver")
def test_what_is_refused_starts_no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfdyno.jobs.tune.ray.DRIVER", "no.such.module")
    said: list[str] = []
    with pytest.raises(UsageError, match="do not go together"):
        last(request(keep_batch=True, named={"accumulation": (1, 2)}), said)
    with pytest.raises(UsageError, match="nothing to resume"):
        last(request(resume=True), said)
    assert said == []


@pytest.mark.usefixtures("driver")
def test_steps_back_of_a_node_come_back_with_its_run() -> None:
    law(xla_fails=True)
    named = {**SMALL, "execution": ("graph", "xla"), "steps_per_execution": (1,)}
    told = last(request(trials=4, named={**named, "batch_size": (64, 128)}))
    asked = [one for one in told.trials if one.values.get("execution") == "xla" and one.ran]
    assert asked
    for one in asked:
        assert [step.step for step in one.retreats] == ["no_triton", "no_autotuning", "graph"]


def test_a_node_without_a_limit_has_that_of_its_own_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []

    def measured(asked: MeasureHere, *_more: object, **_ways: object) -> Value:
        seen.append(asked.limit_bytes)
        raise ToolError("it is enough")

    monkeypatch.setattr("tfdyno.jobs.tune._ray_worker.measured", measured)
    monkeypatch.setattr("tfdyno.jobs.tune._place.memory_bytes", lambda _host: 10 << 30)
    asked = request()
    for on_cpu, limit_bytes in ((True, 0), (False, 0), (True, 7)):
        work = MeasureHere(
            workload=asked.workload, recipe=asked.recipe, protocol=asked.protocol,
            order=0, doing="", limit_bytes=limit_bytes,
        )  # fmt: skip
        told = measure_here(NodeWork(work=work, folder=".", on_cpu=on_cpu))
        assert isinstance(told.found, Failure)
    assert seen == [9 << 30, 0, 7]


def test_a_node_without_the_folder_is_no_trials_fault() -> None:
    asked = request()
    work = LookHere(workload=asked.workload, recipe=asked.recipe)
    found = measure_here(NodeWork(work=work, folder="/no/such/folder", on_cpu=True)).found
    assert isinstance(found, Failure)
    assert found.kind == LOST


@pytest.mark.usefixtures("driver")
def test_a_cluster_that_is_lost_is_no_trials_fault_and_the_study_goes_on() -> None:
    law(lost_at=6)
    with pytest.raises(NodeLost):
        last(request())
    law()
    told = last(request(resume=True))
    assert sum(one.ran for one in told.trials) == 6
    assert not [one for one in told.trials if one.status == "failed"]


@pytest.mark.skipif(HAS_RAY, reason="Ray is here")
def test_without_ray_the_way_to_have_it_is_told() -> None:
    command = [sys.executable, "-m", "tfdyno", "tune", "train.py", "--on", "ray", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "install tfdyno[ray]" in done.stderr


@pytest.fixture
def short_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The names of Ray's sockets may have 107 characters."""
    place = tempfile.mkdtemp(prefix="r", dir="/tmp")
    monkeypatch.setenv("RAY_TMPDIR", place)
    monkeypatch.setenv("HOME", place)
    yield
    assert not list(Path(place).glob("tfdyno-ray-*"))  # Ray has ended, with its files
    shutil.rmtree(place, ignore_errors=True)


WORDS = ("tune", "small.py", "--on", "ray", "--trials", "2", "--runs", "2", "--seconds", "1",
         "--output", "out", "--json", "-q",
         *(word for name in FIXED for word in ("--space", f"{name}=own")),
         "--space", "batch_size=16,256")  # fmt: skip


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.skipif(not HAS_RAY, reason="no Ray here")
@pytest.mark.usefixtures("short_place")
def test_trials_run_on_ray_and_the_study_stays_here(folder: Path) -> None:
    (folder / "small.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "tfdyno", *WORDS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["engine"] == "ray"
    assert all(one["where"] == os.uname().nodename for one in told["trials"] if one["ran"])
    assert len(told["proof"]["measurements"]) == 2  # on a busy machine few of its runs are steady
    more = [*command, "--resume"]
    again = subprocess.run(more, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["trials"] == told["trials"]
