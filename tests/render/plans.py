"""Plans that every engine renders, and the comparison with what it is expected to make of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tfdyno.core.cluster.launch_plan import LaunchPlan

GOLDEN = Path(__file__).parent / "golden"
AWKWARD = (("GREETING", 'it\'s "me" & $HOME; #1'), ("YES", "no"), ("LINES", "a\nb"))
"""Values that a shell or YAML would take for something else."""


def plan(engine: str, **given: Any) -> LaunchPlan:
    """Two nodes on the CPU."""
    basic: dict[str, Any] = {
        "engine": engine, "name": "small", "reference": "train.py", "nodes": 2,
        "output": "tfdyno-runs/small", "folder": "/srv/project",
    }  # fmt: skip
    return LaunchPlan(**{**basic, **given})


def full(engine: str, **given: Any) -> LaunchPlan:
    """Everything that a plan can say, with values that need to be quoted."""
    everything: dict[str, Any] = {
        "nodes": 4,
        "gpus_per_node": 8,
        "gpu": "h100-sxm5-80gb",
        "cpus": 96,
        "memory_bytes": 512 << 30,
        "time_limit_s": 36 * 3600.0,
        "restarts": 3,
        "port": 23456,
        "image": "registry.example/team/train:1.0",
        "python": "/opt/env/bin/python",
        "environment": AWKWARD,
        "options": ("--set", "precision=mixed_bfloat16", "--epochs", "90"),
        "script_arguments": ("--data", "/mnt/a b", "--note", "it's; rm -rf $HOME"),
        "folder": "/srv/my project",
    }
    return plan(engine, **{**everything, **given})


def check_golden(name: str, text: str) -> None:
    """Compare with the file, which GOLDEN=write makes anew."""
    path = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()
