"""What the process beside Ray decides before and while it waits for it, without Ray."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.render.plans import plan

from tfdyno.jobs.launch import ray_driver as _ray_driver
from tfdyno.jobs.launch.ray_driver import LONGEST_PLACE, _place, _set_token, _waiting
from tfdyno.render.launch.ray import ray_plan


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_TMPDIR"):
        monkeypatch.setenv(name, "")  # so that the one of the user is put back
        monkeypatch.delenv(name)
    monkeypatch.setattr(_ray_driver, "TOKEN", tmp_path / "auth_token")


def test_a_ray_of_its_own_has_a_token_of_its_own(tmp_path: Path) -> None:
    _set_token("")
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
    assert not (tmp_path / "auth_token").exists()


def test_a_cluster_gets_the_token_that_the_user_has(tmp_path: Path) -> None:
    _set_token("10.0.0.1:6379")
    assert "RAY_AUTH_MODE" not in os.environ
    (tmp_path / "auth_token").write_text("secret")
    _set_token("10.0.0.1:6379")
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert "RAY_AUTH_TOKEN" not in os.environ


@pytest.mark.parametrize("address", ["", "10.0.0.1:6379"])
def test_a_mode_that_was_chosen_stays(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    _set_token(address)
    assert os.environ["RAY_AUTH_MODE"] == "disabled"
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_the_files_of_ray_lie_where_their_names_are_short_and_go_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _place() as place:
        assert len(str(Path(place).parent)) <= LONGEST_PLACE
        assert Path(place).is_dir()
    assert not Path(place).exists()
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with _place() as place:
        assert Path(place).parent == tmp_path


def test_what_ray_waits_for_is_told() -> None:
    asked = ray_plan(plan("ray", gpus_per_node=8, cpus=4))
    ray = SimpleNamespace(cluster_resources=lambda: {"CPU": 64.0, "GPU": 8.0})
    assert _waiting(ray, asked) == (
        "Ray waits for nodes to join: the plan needs 16 GPU, and the cluster has 8 GPU."
    )
    ray = SimpleNamespace(cluster_resources=lambda: {"CPU": 64.0, "GPU": 16.0})
    assert _waiting(ray, asked) == "Ray starts its workers."
