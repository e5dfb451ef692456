"""A plan as a task of SkyPilot: as expected, and as SkyPilot itself reads it."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.render.plans import AWKWARD, check_golden, full, plan

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.render.launch import skypilot as module
from tfdyno.render.launch.skypilot import accelerator, render_skypilot, run_folder, task

if TYPE_CHECKING:
    from pathlib import Path

SPOT = (("bucket", "s3://team-runs"), ("infra", "aws/us-east-1"), ("spot", "true"))
SKY = os.environ.get("TFDYNO_SKY_PYTHON", "")
"""An interpreter of an environment with SkyPilot, which is half a gigabyte."""
READ = """
import sys
import sky
for path in sys.argv[1:]:
    task = sky.Task.from_yaml(path)
    print(task.num_nodes, list(task.resources)[0].use_spot)
"""


def test_the_task_is_as_expected() -> None:
    alone = plan("skypilot", nodes=1, folder="")
    check_golden("small.sky.yaml", render_skypilot(alone))
    check_golden("full.sky.yaml", render_skypilot(full("skypilot", extra=SPOT, folder=".")))


def test_awkward_values_are_read_back_as_they_are() -> None:
    made = yaml.safe_load(render_skypilot(full("skypilot", extra=SPOT)))
    assert made["envs"] == dict(AWKWARD)
    assert shlex.split(made["run"])[-1] == "it's; rm -rf $HOME"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"extra": ()}, "bucket=s3://NAME"),
        ({"gpu": ""}, "name the card with --gpu"),
        ({"gpu": "gtx-970"}, "SkyPilot's name of gtx-970 is not known here"),
        ({"extra": (*SPOT, ("disk_gib", "many"))}, "disk_gib=many"),
        ({"extra": (*SPOT, ("spot", "yes"))}, "spot 'yes' is not one of true, false"),
    ],
)
def test_what_the_task_lacks_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        render_skypilot(full("skypilot", **{"extra": SPOT, **given}))


def test_every_card_with_a_name_is_in_the_catalogue() -> None:
    names = module._names()
    assert names
    for slug, name in names.items():
        assert find(slug).slug == slug
        assert accelerator(slug) == name


@pytest.mark.slow
@pytest.mark.skipif(not SKY, reason="TFDYNO_SKY_PYTHON names no environment with SkyPilot")
def test_skypilot_reads_it(tmp_path: Path) -> None:
    one, many, wrong = (tmp_path / f"{name}.yaml" for name in ("one", "many", "wrong"))
    one.write_text(render_skypilot(plan("skypilot", nodes=1, folder="")))
    many.write_text(render_skypilot(full("skypilot", extra=SPOT, folder=".")))
    wrong.write_text(many.read_text().replace("num_nodes", "nodes"))
    home = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(
        [SKY, "-c", READ, str(one), str(many)], text=True, capture_output=True, check=False,
        env=home, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.split("\n")[:2] == ["1 False", "4 True"], done.stderr
    refused = subprocess.run([SKY, "-c", READ, str(wrong)], env=home, capture_output=True,
                             check=False, cwd=tmp_path)  # fmt: skip
    assert refused.returncode != 0


@pytest.mark.parametrize(
    ("output", "folder"),
    [("tfdyno-runs/small", "/tfdyno-run/small"), ("mine/a", "/tfdyno-run/mine/a"),
     ("/tfdyno-run/b", "/tfdyno-run/b")],
)  # fmt: skip
def test_the_run_lies_in_the_bucket(output: str, folder: str) -> None:
    made = full("skypilot", extra=SPOT, output=output)
    assert run_folder(made) == folder
    assert f"--output {folder} " in " ".join(task(made, spot=True)["run"].split())
    assert run_folder(plan("skypilot", output=output)) == output


@pytest.mark.parametrize("output", ["/data/run", "../run"])
def test_a_run_beside_the_bucket_is_refused(output: str) -> None:
    with pytest.raises(UsageError, match="does not lie in the bucket"):
        run_folder(full("skypilot", extra=SPOT, output=output))
