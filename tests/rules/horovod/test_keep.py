from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tfdyno.rules.horovod.keep import keeping

if TYPE_CHECKING:
    from tfdyno.core.doctor.migration import Keeping


def starts(nodes: int, gpus: int) -> list[str]:
    return [one.command for one in keeping("train.py", ("--lr", "a b"), nodes=nodes,
                                           gpus_per_node=gpus).start]  # fmt: skip


def commands(found: Keeping) -> list[str]:
    return [one.command for one in (*found.install, *found.start) if one.command]


def test_a_process_runs_for_each_gpu_of_each_node() -> None:
    horovodrun, mpirun, srun = starts(2, 4)
    end = "python train.py --lr 'a b'"
    assert horovodrun == f"horovodrun --gloo -np 8 -H node1:4,node2:4 {end}"
    assert mpirun.startswith("mpirun -np 8 -H node1:4,node2:4 ")
    assert srun == f"srun --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 --mpi=pmix {end}"


def test_one_node_is_this_one_and_cpus_are_one_process() -> None:
    assert "-np 2 -H localhost:2 " in starts(1, 2)[0]
    assert "-np 1 -H localhost:1 " in starts(1, 0)[0]
    assert "--gpus" not in starts(1, 0)[2]


@pytest.mark.parametrize(("gpus", "nccl"), [(0, False), (4, True)])
def test_only_gpus_are_built_with_nccl(gpus: int, nccl: bool) -> None:
    text = " ".join(commands(keeping("train.py", (), nodes=1, gpus_per_node=gpus)))
    assert ("HOROVOD_GPU_OPERATIONS=NCCL" in text) == nccl
    assert ("tensorflow[and-cuda]==2.15.1" in text) == nccl


def test_every_command_is_one_of_a_shell_with_nothing_left_to_fill() -> None:
    for command in commands(keeping("a dir/train.py", (), nodes=3, gpus_per_node=2)):
        assert "{" not in command
        assert subprocess.run(["bash", "-n", "-c", command], check=False).returncode == 0


def test_what_was_seen_names_its_source() -> None:
    found = keeping("train.py", (), nodes=1, gpus_per_node=1)
    assert all(one.source for one in found.support)
    assert all(one.source for one in (*found.install, *found.start))
    assert [one.tensorflow for one in found.support if one.trains.startswith("fit is right")] == [
        "2.15.1"
    ]
