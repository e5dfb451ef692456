"""A plan as processes of this machine."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from tests.render.plans import check_golden, full, plan

from tfdyno.core.base.errors import UsageError
from tfdyno.render.launch.local import node_variables, render_local, with_cards

if TYPE_CHECKING:
    from pathlib import Path


def test_the_script_is_as_expected() -> None:
    check_golden("small.sh", render_local(plan("local")))
    check_golden("full.sh", render_local(full("local", nodes=2, gpus_per_node=2)))


def test_the_shell_reads_it() -> None:
    text = render_local(full("local"))
    done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_process_has_cards_and_an_address_of_its_own() -> None:
    made = plan("local", nodes=2, gpus_per_node=2)
    variables = node_variables(made, 1, (5000, 5001))
    assert variables == {
        "CUDA_VISIBLE_DEVICES": "2,3",
        "TFDYNO_WORKERS": "127.0.0.1:5000,127.0.0.1:5001",
        "TFDYNO_RANK": "1",
    }


def test_without_cards_all_of_them_are_hidden() -> None:
    assert node_variables(plan("local", nodes=1), 0, (5000,)) == {"CUDA_VISIBLE_DEVICES": "-1"}


@pytest.mark.parametrize(
    "listed", ["4,5,6,7,8", "GPU-a, GPU-b,GPU-c,GPU-d", "MIG-1,MIG-2,MIG-3,MIG-4"]
)
def test_the_cards_that_are_listed_are_shared_out(listed: str) -> None:
    made = with_cards(plan("local", gpus_per_node=2), {"CUDA_VISIBLE_DEVICES": listed})
    found = [node_variables(made, rank, (1, 2))["CUDA_VISIBLE_DEVICES"] for rank in range(2)]
    assert ",".join(found).split(",") == [part.strip() for part in listed.split(",")][:4]


@pytest.mark.parametrize("listed", ["", "-1", "0,1,2", "0,1,-1,3"])
def test_fewer_cards_than_are_needed_are_refused(listed: str) -> None:
    made = plan("local", gpus_per_node=2, environment=(("CUDA_VISIBLE_DEVICES", listed),))
    with pytest.raises(UsageError, match="2 processes with 2 GPUs each need 4"):
        node_variables(made, 0, (1, 2))


NODE = """#!/bin/bash
trap 'echo ended $TFDYNO_RANK >> calls; exit 75' TERM
echo "started $TFDYNO_RANK ${SLURM_PROCID-none}" >> calls
%s
"""
WAIT = "while :; do sleep 0.05; done"
BOTH_RUN = "until grep -q 'started 0' calls && grep -q 'started 1' calls; do sleep 0.05; done"
FAILS_ONCE_0_RUNS = f"""
[ $TFDYNO_RANK = 0 ] || {{ until grep -q 'started 0' calls; do sleep 0.05; done; exit 3; }}
{WAIT}"""
LIMIT_S = 60


@pytest.mark.parametrize(
    ("words", "code"),
    [("exit 0", 0), (f"{BOTH_RUN}; exit 127", 127), (FAILS_ONCE_0_RUNS, 3)],
)
def test_the_first_that_fails_ends_all(words: str, code: int, tmp_path: Path) -> None:
    done = script(words, tmp_path)
    assert done.wait(LIMIT_S) == code
    calls = (tmp_path / "calls").read_text()
    assert "started 0 none" in calls
    assert "started 1 none" in calls
    if code != 127:  # then both may end by themselves, or one be ended by the other's end
        assert ("ended 0" in calls) == (code == 3)


def test_the_script_passes_its_own_end_on(tmp_path: Path) -> None:
    done = script(WAIT, tmp_path)
    until_s = time.monotonic() + LIMIT_S
    while time.monotonic() < until_s and not _said(tmp_path, "started"):
        time.sleep(0.02)
    done.terminate()
    assert done.wait(LIMIT_S) == 75
    assert _said(tmp_path, "ended")


def script(words: str, folder: Path) -> subprocess.Popen[str]:
    """The script of two nodes, which are a stand-in."""
    (folder / "node").write_text(NODE % words)
    (folder / "node").chmod(0o755)
    made = plan("local", python=str(folder / "node"), folder=str(folder))
    environment = {"PATH": "/usr/bin:/bin", "SLURM_PROCID": "1"}
    return subprocess.Popen(["bash", "-c", render_local(made)], text=True, env=environment)


def _said(folder: Path, word: str) -> bool:
    path = folder / "calls"
    return path.exists() and path.read_text().count(word) == 2
