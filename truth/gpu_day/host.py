"""What there is to work with: the Python, its packages, the card, the checkout."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_truth import host as truth_host

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpu_truth.card import Card

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"nvidia-ml-py": "pynvml", "pyyaml": "yaml"}
"""Names to import, where they are not those of the package."""
LANE_CORES, LANE_BYTES, MOST_LANES = 2, 4 << 30, 10
"""What a command takes that runs beside others, and how many there are at most."""


def missing_dependencies(root: Path = ROOT) -> tuple[str, ...]:
    """What tfdyno itself needs and this Python does not have, by the names of packages."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[<>=!~\[; ]", text)[0] for text in project["dependencies"]]
    return missing(names)


def missing(names: Iterable[str]) -> tuple[str, ...]:
    """Of these packages those that this Python does not find."""
    modules = {name: MODULES.get(name, name).replace("-", "_") for name in names}
    return tuple(name for name, module in modules.items() if not importlib.util.find_spec(module))


def environment(out: Path, *, cpu: bool, uuid: str = "", root: Path = ROOT) -> dict[str, str]:
    """All variables of the commands: this checkout, files in the folder of the day, one card."""
    own = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, [str(root / "src"), str(root / "truth"), own]))
    card = {"CUDA_VISIBLE_DEVICES": "-1" if cpu else uuid} if cpu or uuid else {}
    return {
        **os.environ,
        "PYTHONPATH": path,
        "TFDYNO_CACHE": str(out / "cache"),
        "TFDYNO_DATA": str(out / "data"),
        "TFDYNO_SERVING": str(_serving()),
        **card,
    }


def lanes(card: Card | None, cores: int | None = None) -> int:
    """How many steps may run side by side: as cores and the memory of the card allow."""
    if card is None or card.memory_total_bytes is None:
        return 1
    fit = card.memory_total_bytes // LANE_BYTES
    return max(1, min(MOST_LANES, (cores or truth_host.cores()) // LANE_CORES, fit))


def _serving() -> Path:
    """The user's own serving environment, which takes minutes and a network to make."""
    if named := os.environ.get("TFDYNO_SERVING"):
        return Path(named).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or Path("~/.local/share").expanduser()
    return Path(os.environ.get("TFDYNO_DATA") or Path(data, "tfdyno"), "serving").expanduser()


def about(card: Card | None, *, seconds_s: float) -> dict[str, Any]:
    """Where and with what the day is."""
    frameworks = {name: truth_host.versions(name)["framework_version"]
                  for name in ("tensorflow", "jax") if importlib.util.find_spec(name)}  # fmt: skip
    return {
        "card": card.name if card else "CPU",
        "is_cpu": card is None,
        "driver": card.driver if card else "",
        "memory_bytes": card.memory_total_bytes if card else None,
        "cpu": truth_host.cpu_name(),
        "cores": truth_host.cores(),
        "python": ".".join(map(str, sys.version_info[:3])),
        **frameworks,
        "keras": truth_host.versions("tensorflow")["keras_version"],
        "tfdyno": revision(),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "seconds_s": seconds_s,
    }


def revision(root: Path = ROOT) -> str:
    """The commit of the checkout; empty where git does not tell."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--short=10", "HEAD"],
            capture_output=True, text=True, timeout=10.0, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
