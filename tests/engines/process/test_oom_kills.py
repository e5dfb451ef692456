"""engines/oom_kills: a kill is called one for lack of memory where the kernel has counted it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.engines.process.oom_kills import NOT_COUNTED, VMSTAT, oom_kills, why_killed

if TYPE_CHECKING:
    from pathlib import Path


def test_the_counter_of_the_kernel_is_read(tmp_path: Path) -> None:
    file = tmp_path / "vmstat"
    file.write_text("nr_free_pages 81\noom_kill_more 7\noom_kill 3\nswap_ra 0\n")
    assert oom_kills(file) == 3


@pytest.mark.parametrize("text", ["", "nr_free_pages 81\n", "oom_kill x\n"])
def test_a_kernel_that_does_not_count_says_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "vmstat"
    file.write_text(text)
    assert oom_kills(file) == NOT_COUNTED
    assert oom_kills(tmp_path / "none") == NOT_COUNTED


@pytest.mark.skipif(not VMSTAT.exists(), reason="this system has no /proc/vmstat")
def test_this_kernel_counts() -> None:
    assert oom_kills() >= NOT_COUNTED


@pytest.mark.parametrize(
    ("before", "now", "why", "remedy"),
    [
        (4, 5, "meanwhile the kernel killed a process of this machine because memory ran out",
         "use a larger machine"),
        (4, 4, "the kernel counted no kill for lack of memory meanwhile", "who ended it"),
        (NOT_COUNTED, 4, "(often: out of memory; the kernel's log says)", "dmesg"),
        (NOT_COUNTED, NOT_COUNTED, "(often: out of memory; the kernel's log says)", "dmesg"),
    ],
)  # fmt: skip
def test_only_what_was_counted_is_said(before: int, now: int, why: str, remedy: str) -> None:
    said, told = why_killed(before, now)
    assert said.startswith("it was killed by SIGKILL")
    assert why in said
    assert remedy in told
