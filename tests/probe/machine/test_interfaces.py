"""Network interfaces: those of this machine, and rates from recorded files of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

from tfdyno.probe.base.host import Host, this_host
from tfdyno.probe.machine import interfaces
from tfdyno.probe.machine.interfaces import infiniband_bytes_per_s, resolved

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def put(root: Path, name: str, text: str = "") -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_loopback_of_this_machine_has_its_address() -> None:
    found = {one.name: one for one in interfaces.interfaces(this_host())}
    assert "127.0.0.1" in found["lo"].addresses
    assert found["lo"].kind == "loopback"


def test_kinds_and_speeds_are_those_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("docker0", "eno1", "tun0", "br-lan")
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {name: [] for name in names})
    monkeypatch.setattr(psutil, "net_if_stats", dict)
    put(tmp_path, "sys/class/net/docker0/bridge/bridge_id")
    put(tmp_path, "sys/class/net/br-lan/bridge/bridge_id")
    put(tmp_path, "sys/class/net/eno1/device/vendor")
    put(tmp_path, "sys/class/net/eno1/speed", "25000\n")
    put(tmp_path, "sys/class/net/tun0/speed", "-1\n")
    found = {one.name: one for one in interfaces.interfaces(Host(root=tmp_path))}
    kinds = {name: one.kind for name, one in found.items()}
    assert kinds == {"docker0": "bridge", "br-lan": "bridge", "eno1": "wire", "tun0": "virtual"}
    assert found["eno1"].bytes_per_s == 3.125e9  # 25 Gbit/s
    assert found["tun0"].bytes_per_s == 0.0


def test_only_active_ports_of_infiniband_count(tmp_path: Path) -> None:
    for port, state in (("1", "4: ACTIVE"), ("2", "1: DOWN")):
        put(tmp_path, f"sys/class/infiniband/mlx5_0/ports/{port}/state", state)
        put(tmp_path, f"sys/class/infiniband/mlx5_0/ports/{port}/rate", "200 Gb/sec (4X HDR)")
    assert infiniband_bytes_per_s(Host(root=tmp_path)) == 25e9
    assert infiniband_bytes_per_s(Host(root=tmp_path / "none")) == 0.0


def test_a_name_that_leads_nowhere_has_no_address() -> None:
    assert resolved("no-such-host.invalid") == ()
    assert resolved("127.0.0.1") == ("127.0.0.1",)
