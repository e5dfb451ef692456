from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.probe.base.host import Host, this_host
from tfdyno.probe.machine.system import (
    container,
    cpu_flags,
    environment,
    locked_memory_bytes,
    memory_bytes,
    release,
    shared_memory_bytes,
    system,
)

if TYPE_CHECKING:
    from tests.probe.conftest import Build


def test_a_processor_without_avx_is_known_to_have_none() -> None:
    assert cpu_flags("flags\t\t: fpu sse2 ssse3\n") == ("sse2",)
    assert cpu_flags("Features\t: fp asimd\n") == ()


@pytest.mark.parametrize(
    ("files", "variables", "expected"),
    [
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({"/proc/1/cgroup": "1:cpu:/kubepods/burstable/podx"}, {}, "kubernetes"),
        ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"/.dockerenv": ""}, {"COLAB_RELEASE_TAG": "x"}, "colab"),
        ({}, {"KAGGLE_KERNEL_RUN_TYPE": "Batch"}, "kaggle"),
        ({}, {"APPTAINER_NAME": "tf.sif"}, "apptainer"),
        ({"/proc/1/cgroup": "0::/init.scope"}, {}, "none"),
    ],
)
def test_containers_are_told_apart(
    build: Build, files: dict[str, str], variables: dict[str, str], expected: str
) -> None:
    assert container(build(files, environment=variables)) == expected


def test_memory_is_that_of_the_control_group_where_it_is_less(build: Build) -> None:
    files = {"/proc/meminfo": "MemTotal:  1000 kB\n", "/sys/fs/cgroup/memory.max": "max\n"}
    assert memory_bytes(build(files)) == 1024_000
    (host := build({})).path("/sys/fs/cgroup/memory.max").write_text("4096\n")
    assert memory_bytes(host) == 4096


def test_limits_and_releases_are_read() -> None:
    line = "Max locked memory         65536                65536                bytes\n"
    assert locked_memory_bytes(line) == 65536
    assert locked_memory_bytes("Max locked memory   unlimited   unlimited   bytes") == -1
    assert release('NAME="Fedora Linux"\nVERSION_ID=41\n') == "Fedora Linux 41"
    assert release("") == ""


def test_only_variables_that_matter_are_kept() -> None:
    given = {"CUDA_VISIBLE_DEVICES": "", "NCCL_DEBUG": "INFO", "HOME": "/home/x", "PATH": "/bin"}
    assert environment(Host(environment=given)) == {
        "CUDA_VISIBLE_DEVICES": "",
        "NCCL_DEBUG": "INFO",
    }


def test_an_empty_tree_leaves_everything_unknown(build: Build) -> None:
    part = system(build({}), MachineFacts())
    assert part.fields["is_wsl"] is None
    assert part.fields["memory_bytes"] == part.fields["shared_memory_bytes"] == 0
    assert part.fields["locked_memory_limit_bytes"] == -1


def test_this_machine_has_memory_and_shared_memory() -> None:
    host = this_host()
    assert memory_bytes(host) > 1 << 28
    assert shared_memory_bytes(host) > 0
