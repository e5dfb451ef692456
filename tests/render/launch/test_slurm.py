"""A plan as a batch script: as expected, and as bash runs it."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.render.plans import check_golden, full, plan

from tfdyno.core.base.errors import UsageError
from tfdyno.render.launch.slurm import KNOWN, render_slurm

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.cluster.launch_plan import LaunchPlan

EXTRA = (("account", "team 1"), ("gpu_type", "h100"), ("module", "cuda/12.5, gcc"),
         ("partition", "gpu"))  # fmt: skip
SRUN = """#!/bin/bash
# Stands for Slurm's programs: notes how it is called, and ends with the next code of the list.
printf '%s\\n' "$(basename "$0")|$#|$*|$GREETING" >> "$CALLS"
[ "$(basename "$0")" = srun ] || exit 0
[ -z "$TOLD" ] || kill -USR1 $PPID
read -r code < "$CODES"
sed -i 1d "$CODES"
exit "$code"
"""


def test_the_script_is_as_expected() -> None:
    check_golden("small.sbatch", render_slurm(plan("slurm", restarts=1, time_limit_s=600.0)))
    check_golden("full.sbatch", render_slurm(full("slurm", extra=EXTRA)))


def test_bash_reads_it() -> None:
    text = render_slurm(full("slurm", extra=EXTRA))
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("codes", "restarts", "code", "starts"),
    [("0", 3, 0, 1), ("3 0", 3, 0, 2), ("3 137 3", 2, 3, 3), ("2", 3, 2, 1), ("1", 0, 1, 1)],
)
def test_it_starts_again_after_failures_that_may_pass(
    codes: str, restarts: int, code: int, starts: int, tmp_path: Path
) -> None:
    made = plan("slurm", restarts=restarts, folder=str(tmp_path))
    assert run(made, codes, tmp_path) == code
    assert calls(tmp_path).count("srun|") == starts


def test_when_the_time_is_over_tasks_are_told_and_the_job_is_queued_again(tmp_path: Path) -> None:
    made = plan("slurm", time_limit_s=600.0, folder=str(tmp_path))
    assert run(made, "75", tmp_path, told="yes") == 0
    assert "scancel|3|--quiet --signal=TERM 42|" in calls(tmp_path)
    assert calls(tmp_path).splitlines()[-1].startswith("scontrol|2|requeue 42|")


def test_awkward_values_arrive_as_they_are(tmp_path: Path) -> None:
    made = full("slurm", folder=str(tmp_path))
    assert run(made, "0", tmp_path) == 0
    assert '|it\'s "me" & $HOME; #1' in calls(tmp_path)
    assert "--data /mnt/a b --note it's; rm -rf $HOME" in calls(tmp_path)


@pytest.mark.parametrize(
    ("seconds", "clock"), [(60, "00:01:00"), (90 * 60, "01:30:00"), (129_600, "1-12:00:00")]
)
def test_the_time_limit_is_written_as_slurm_has_it(seconds: float, clock: str) -> None:
    assert f"#SBATCH --time={clock}\n" in render_slurm(plan("slurm", time_limit_s=seconds))


def test_every_setting_has_a_meaning() -> None:
    assert all(KNOWN.values())


def run(made: LaunchPlan, codes: str, folder: Path, *, told: str = "") -> int:
    """The exit code of the script, where Slurm's programs are a stand-in."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("srun", "scontrol", "scancel"):
        (programs / name).write_text(SRUN)
        (programs / name).chmod(0o755)
    (folder / "codes").write_text("\n".join(codes.split()) + "\n")
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin", "CALLS": str(folder / "calls"), "TOLD": told,
        "CODES": str(folder / "codes"), "SLURM_JOB_ID": "42",
    }  # fmt: skip
    done = subprocess.run(
        ["bash"], input=render_slurm(made), text=True, env=environment, check=False, timeout=30
    )
    return done.returncode


def calls(folder: Path) -> str:
    return (folder / "calls").read_text()


def test_the_time_limit_is_rounded_up_and_the_margin_is_of_that() -> None:
    text = render_slurm(plan("slurm", time_limit_s=61.0))
    assert "#SBATCH --time=00:02:00\n#SBATCH --signal=B:USR1@40\n" in text


def test_files_of_others_may_use_what_is_not_set(tmp_path: Path) -> None:
    (tmp_path / "activate").write_text('echo "${NOT_SET}$NOT_SET"\n')
    for name, code in (("activate", 0), ("none", 2)):
        shutil.rmtree(tmp_path / "bin", ignore_errors=True)
        made = plan("slurm", folder=str(tmp_path), extra=(("activate", str(tmp_path / name)),))
        assert run(made, "0", tmp_path) == code


@pytest.mark.parametrize("folder", ["/work/a:b", "/work/a,b"])
def test_a_folder_that_pyxis_reads_as_two_is_refused(folder: str) -> None:
    with pytest.raises(UsageError, match="cannot be mounted"):
        render_slurm(plan("slurm", image="train:1", folder=folder))
    assert "cd " in render_slurm(plan("slurm", folder=folder))
