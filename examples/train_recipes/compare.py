"""Train digits.py under each recipe, and print what it learned; --write puts it into README.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SCRIPT = HERE / "digits.py"
RECIPES = ("float32", "bfloat16_xla", "accumulation_ema", "mirrored_xla", "multiworker")
SAID = re.compile(r"On digits it has not seen: loss ([\d.]+), accuracy ([\d.]+)")
TABLE = re.compile(r"(?<=<!-- compare\.py --write -->\n\n).*?\n(?=\n<!-- end -->)", re.S)
HEAD = (
    "| recipe | loss | accuracy | steps | updates | seconds |",
    "| --- | --: | --: | --: | --: | --: |",
)


def trained(name: str, *, seed: int = 1) -> dict[str, float]:
    """Train under one recipe, and read what the script says of digits it has not seen.

    Raises:
        RuntimeError: The command failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = ["train", str(SCRIPT), "--recipe", str(HERE / "recipes" / f"{name}.toml")]
        words += ["--set", f"seed={seed}", "--output", "run", "--json", "--quiet"]
        command = [sys.executable, "-m", "tfdyno", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr}")
        answer = json.loads(done.stdout)
        said = SAID.search(Path(folder, "run/logs/worker-0.log").read_text())
    if said is None:
        raise RuntimeError(f"{name}: the script did not come to its end")
    return {
        "loss": float(said[1]),
        "accuracy": float(said[2]),
        "val_accuracy": answer["history"]["val_accuracy"][-1],
        "steps": answer["steps"],
        "updates": answer["updates"],
        "seconds": answer["seconds_s"],
    }


def row(name: str, found: dict[str, float]) -> str:
    """A line of the table."""
    return (
        f"| `{name}` | {found['loss']:.3f} | {100 * found['accuracy']:.1f} % | "
        f"{found['steps']:,} | {found['updates']:,} | {found['seconds']:.1f} |"
    )


def main() -> None:
    """Train under all of them."""
    lines = [*HEAD]
    for name in RECIPES:
        lines.append(row(name, trained(name)))
        print(lines[-1], flush=True)
    if "--write" in sys.argv[1:]:
        page = HERE / "README.md"
        page.write_text(TABLE.sub("\n".join(lines) + "\n", page.read_text()))


if __name__ == "__main__":
    main()
