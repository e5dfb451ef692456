"""The file of SageMaker tells a node who it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.cluster import cluster_of
from tfdyno.engines.rendezvous.sagemaker_hosts import with_hosts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "resourceconfig.json"
    told = {
        "current_host": "algo-2", "hosts": ["algo-1", "algo-2"], "network_interface_name": "eth0"
    }  # fmt: skip
    made.write_text(json.dumps(told))
    return made


def test_a_container_without_the_toolkit_knows_its_cluster(file: Path) -> None:
    process = cluster_of(with_hosts({"A": "1"}, file), nodes=2)
    assert process
    assert (process.rank, process.addresses) == (1, ("algo-1:12355", "algo-2:12355"))


def test_what_the_toolkit_says_is_kept(file: Path) -> None:
    told = {"SM_HOSTS": '["a", "b"]', "SM_CURRENT_HOST": "a"}
    assert with_hosts(told, file) == told


def test_elsewhere_nothing_changes(tmp_path: Path) -> None:
    assert with_hosts({"A": "1"}, tmp_path / "none.json") == {"A": "1"}


@pytest.mark.parametrize("text", ["", "[]", '{"hosts": []}'])
def test_a_file_that_cannot_be_read_is_told(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(UsageError, match="cannot be read"):
        with_hosts({}, file)
