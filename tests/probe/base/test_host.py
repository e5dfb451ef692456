from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.probe.base.host import Host, this_host

if TYPE_CHECKING:
    from tests.probe.conftest import Build


def test_paths_of_a_tree_lie_under_its_root() -> None:
    host = Host(root=Path("/tree"))
    assert host.path("/proc/version") == Path("/tree/proc/version")
    assert host.path(r"C:\Windows\x.dll") == Path("/tree/C/Windows/x.dll")
    assert host.path("/sys/0000:01:00.0") == Path("/tree/sys/0000:01:00.0")
    assert this_host().path("/proc/version") == Path("/proc/version")


def test_links_are_followed_and_named_as_on_their_machine(build: Build) -> None:
    host = build({"/usr/local/cuda-12.5/x.so.1.2": "", "/usr/local/cuda": "-> cuda-12.5"})
    host.path("/usr/local/cuda-12.5/x.so").symlink_to("x.so.1.2")
    assert host.real("/usr/local/cuda/x.so") == "/usr/local/cuda-12.5/x.so.1.2"
    assert host.real("/none") == "/none"


def test_what_cannot_be_read_is_empty(build: Build) -> None:
    host = build({"/a/b": "text"})
    assert (host.text("/none"), host.text("/a"), host.text("/a/b", limit=2)) == ("", "", "te")
    assert (host.names("/none"), host.names("/a"), host.exists("/none")) == ((), ("b",), False)


def test_this_host_is_the_one_that_runs_the_test() -> None:
    host = this_host()
    assert (host.python, host.is_live) == (sys.executable, True)
    assert this_host("/x/python").python == "/x/python"
