"""A disk that becomes full under several processes costs nothing but time."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.jobs.disks import mounted
from tests.jobs.launches import OPTIONS, plan

from tfdyno.core.base.errors import ToolError
from tfdyno.core.train.training import CHECKPOINTS
from tfdyno.jobs.launch.local import launch_local
from tfdyno.runtime.checkpoint.files import list_checkpoints, read_arrays

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tf, pytest.mark.slow]
REFUSAL = re.compile(
    r"worker 0: cannot write the checkpoint of step \d+ to .*: No space left on device, [\d,]+ "
    r"bytes needed, [\d,]+ free; free some space, then continue with --resume"
)


@pytest.mark.parametrize("full", ["the whole folder", "where worker 0 writes"])
def test_a_full_disk_ends_all_with_a_sentence_and_room_is_enough_to_go_on(
    full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worker 1 writes nothing; the second disk is one of worker 0 alone."""
    monkeypatch.chdir(tmp_path)
    asked = plan(tmp_path, options=(*OPTIONS, "--keep", "1000"))
    run = tmp_path / "run"
    run.mkdir()
    disk = tmp_path / "disk"
    with mounted(disk, "160k"):
        if full == "the whole folder":
            run.rmdir()
            run.symlink_to(disk)
        else:
            (run / CHECKPOINTS).symlink_to(disk)
        with pytest.raises(ToolError) as caught:
            launch_local(asked)
        assert REFUSAL.search(str(caught.value)), str(caught.value)
        found, damaged = list_checkpoints(run / CHECKPOINTS)
        assert found
        assert not damaged
        assert all(list(read_arrays(one)) for one in found)
        assert not list(run.rglob("*.part"))
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        again = launch_local(asked)
        assert again.outcome.resumed_from == str(found[0].marker)
    shutil.rmtree(run, ignore_errors=True)
    run.unlink(missing_ok=True)
    whole = launch_local(plan(tmp_path))
    assert not whole.outcome.resumed_from
    assert again.outcome.history == whole.outcome.history
