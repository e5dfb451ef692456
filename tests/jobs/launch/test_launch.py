"""The file of a plan, and what starts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.probe.fake_nvml import FakeNvml
from tests.render.plans import plan

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.launch_plan import ENGINES
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.launch.launch import (
    check_plan,
    known_settings,
    own_share,
    rendered,
    submit_words,
    written,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_tells_its_settings(engine: str) -> None:
    known = known_settings(engine)
    assert bool(known) == (engine != "local")
    assert all(known.values())


def test_what_is_written_is_what_is_rendered(tmp_path: Path) -> None:
    path = written(plan("slurm"), tmp_path / "new" / "folder")
    assert path.name == "small.sbatch"
    assert path.read_text() == rendered(plan("slurm"))


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write to"):
        written(plan("slurm"), tmp_path / "file" / "folder")


def test_spot_machines_are_managed_by_skypilot() -> None:
    assert submit_words(plan("skypilot"))[:2] == ("sky", "launch")
    spot = plan("skypilot", extra=(("spot", "true"),))
    assert submit_words(spot)[:3] == ("sky", "jobs", "launch")


def test_only_a_managed_job_of_skypilot_is_begun_again() -> None:
    again = plan("skypilot", restarts=3, extra=(("bucket", "s3://runs"),))
    assert submit_words(again)[:3] == ("sky", "jobs", "launch")
    assert "sky jobs launch THIS" in rendered(again)
    assert submit_words(plan("ray")) == ()
    assert submit_words(plan("ray", extra=(("kuberay", "rayjob"),)))[0] == "kubectl"


def test_a_strategy_of_one_machine_does_not_go_over_several() -> None:
    check_plan(plan("slurm", nodes=1), Recipe(strategy="mirrored"))
    with pytest.raises(UsageError, match="strategy = mirrored does not train on 2 nodes"):
        check_plan(plan("slurm"), Recipe(strategy="mirrored"))


def test_processes_of_one_machine_share_its_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfdyno.probe.cards.cards.bindings", lambda: FakeNvml(count=5))
    assert [own_share(nodes, None) for nodes in (1, 2, 8)] == [5, 2, 0]
    assert own_share(2, "1,3") == 1


def test_tpus_and_the_strategy_that_trains_on_them_go_together() -> None:
    tpu = plan("vertex", nodes=1, extra=(("tpu", "v5e-8"),))
    check_plan(tpu, Recipe(strategy="tpu"))
    with pytest.raises(UsageError, match="say --set strategy=tpu"):
        check_plan(tpu, Recipe())
    with pytest.raises(UsageError, match="name them with --with tpu=v5e-8"):
        check_plan(plan("vertex", nodes=1), Recipe(strategy="tpu"))
