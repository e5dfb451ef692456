"""Recorded machines as folder trees."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tfdyno.probe.base.host import Host

MACHINES = Path(__file__).parents[1] / "data" / "machines"
Build = Callable[..., Host]
Recorded = Callable[[str], Host]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Make a tree of files (``-> target`` is a link) and the host that looks at it."""

    def make(files: Mapping[str, str], **about: Any) -> Host:
        host = Host(root=tmp_path, **about)
        for name, content in files.items():
            path = host.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if content.startswith("-> "):
                path.symlink_to(content[3:])
            else:
                path.write_text(content)
        return host

    return make


@pytest.fixture
def recorded(build: Build) -> Recorded:
    """The host of ``tests/data/machines/NAME.json``."""

    def make(name: str) -> Host:
        record = json.loads((MACHINES / f"{name}.json").read_text())
        return build(record["files"], **record["host"])

    return make
