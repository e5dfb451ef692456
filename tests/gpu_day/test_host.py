"""gpu_day/host: what is missing is named, and commands see this checkout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_day import host
from gpu_truth.card import Card

if TYPE_CHECKING:
    import pytest


def test_packages_are_found_by_their_modules_names() -> None:
    assert host.missing(("click", "pyyaml", "nvidia-ml-py")) == ()
    assert host.missing(("click", "no-such-package")) == ("no-such-package",)


def test_the_dependencies_are_those_of_the_project(tmp_path: Path) -> None:
    assert host.missing_dependencies() == ()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = ["click>=8", "no-such-one>=1; x", "neither[extra]==2"]\n'
    )
    assert host.missing_dependencies(tmp_path) == ("no-such-one", "neither")


def test_commands_see_the_checkout_one_card_and_a_cache_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/own")
    monkeypatch.setenv("TFDYNO_DATA", "/user")
    monkeypatch.delenv("TFDYNO_SERVING", raising=False)
    found = host.environment(Path("/out"), cpu=False, uuid="GPU-1", root=Path("/tree"))
    assert found["PYTHONPATH"].split(os.pathsep) == ["/tree/src", "/tree/truth", "/own"]
    assert (found["CUDA_VISIBLE_DEVICES"], found["TFDYNO_CACHE"]) == ("GPU-1", "/out/cache")
    assert (found["TFDYNO_DATA"], found["TFDYNO_SERVING"]) == ("/out/data", "/user/serving")
    assert host.environment(Path("/out"), cpu=True)["CUDA_VISIBLE_DEVICES"] == "-1"


def test_steps_side_by_side_are_as_many_as_cores_and_memory_allow() -> None:
    def card(memory_bytes: int | None) -> Card:
        return Card(index="0", name="x", uuid="GPU-1", driver="580", memory_used_bytes=0,
                    memory_total_bytes=memory_bytes, load_percent=0, power_limit_w=None,
                    compute_capability="9.0", divided=False, tenants=())  # fmt: skip

    assert host.lanes(card(141 << 30), cores=16) == 8
    assert host.lanes(card(141 << 30), cores=96) == host.MOST_LANES
    assert host.lanes(card(16 << 30), cores=16) == 4
    assert host.lanes(card(2 << 30), cores=16) == host.lanes(card(141 << 30), cores=1) == 1
    assert host.lanes(card(None), cores=16) == host.lanes(None, cores=16) == 1


def test_a_day_on_the_cpu_says_so() -> None:
    told = host.about(None, seconds_s=60.0)
    assert (told["card"], told["is_cpu"]) == ("CPU", True)
    assert told["tensorflow"].startswith("2.")
    assert host.revision(Path("/")) == ""
