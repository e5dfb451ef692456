"""Diagnose each script, prove the fix, and print a table of what was kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCRIPTS = ("photos.py", "forecast.py", "readings.py")
HEAD = (
    "| script | what holds it back | setting that was kept | expected | proven | interval |",
    "| --- | --- | --- | --: | --: | --: |",
)


def proven(script: str) -> dict[str, Any]:
    """The answer of ``tfdyno diagnose --fix``.

    Raises:
        RuntimeError: The command failed.
    """
    command = [sys.executable, "-m", "tfdyno", "diagnose", str(HERE / script), "--fix", "--json",
               "--quiet"]  # fmt: skip
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{script}: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def rows(script: str, answer: dict[str, Any]) -> list[str]:
    """A line for each fix that was kept; each was measured on top of those before it."""
    expected = {one["cause"]: one["expected_gain"] for one in answer["findings"]}
    said, lines = answer["primary"]["cause"], []
    for one in answer["proofs"]:
        if not one["kept"]:
            continue
        low, high = one["interval"]
        settings = " ".join(f"`{key}={value}`" for key, value in one["settings"].items())
        lines.append(
            f"| `{script}` | `{said}` | {settings} | {expected[one['cause']]['best']:.1f} × | "
            f"{one['ratio']:.1f} × | {low:.1f}–{high:.1f} |"
        )
    return lines or [f"| `{script}` | `{said}` | none was kept | | | |"]


def main() -> None:
    """All three, one after the other."""
    print("\n".join(HEAD))
    for script in SCRIPTS:
        print("\n".join(rows(script, proven(script))), flush=True)


if __name__ == "__main__":
    main()
