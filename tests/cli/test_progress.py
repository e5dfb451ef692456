from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from tfdyno.cli import progress
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.lasting import Lasting

if TYPE_CHECKING:
    import pytest


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line(quiet=True, verbose=True) as show:
        show("tracing")
    assert capsys.readouterr().err == ""


def test_verbose_keeps_every_stage_with_the_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line(quiet=False, verbose=True) as show:
        show("tracing")
        show("compiling")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" s  ")[1] for line in lines] == ["tracing", "compiling"]


def test_what_lasts_stays_as_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line(quiet=False, verbose=False) as show:
        show(Lasting("GPU 0 is shared."))
        show("tracing")
    assert capsys.readouterr().err == "tfdyno: GPU 0 is shared.\n"
    with progress_line(quiet=True, verbose=False) as show:
        show(Lasting("GPU 0 is shared."))
    assert capsys.readouterr().err == ""


def test_a_long_stage_is_told_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", 0.05)
    with progress_line(quiet=False, verbose=False) as show:
        show("running train.py")
        time.sleep(0.2)
    told = capsys.readouterr().err
    assert "running train.py, for 0 s now" in told
    assert progress.CLEAR not in told


def test_a_terminal_gets_one_line_that_is_gone_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_line(quiet=False, verbose=False) as show:
        show("tracing")
    assert capsys.readouterr().err == f"{progress.CLEAR}tracing{progress.CLEAR}"


def test_a_stage_of_wide_letters_is_cut_to_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_line(quiet=False, verbose=False) as show:
        show("测" * 60)
    assert capsys.readouterr().err == f"{progress.CLEAR}{'测' * 35}{progress.CLEAR}"
