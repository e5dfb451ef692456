"""cli/convert_progress: a bar on a terminal, few lines elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.cli.terminal import on_terminal

from tfdyno.cli.data import convert_progress as module
from tfdyno.cli.data.convert_progress import convert_progress

if TYPE_CHECKING:
    import pytest

EVENTS = [
    json.dumps(
        {"event": "convert", "shard": shard, "of_shards": 2, "records": records, "of_records": 90,
         "bytes": records * 1000}
    )
    for shard, records in ((1, 1), (1, 40), (2, 60), (2, 90))
]  # fmt: skip
LINES = ["importing TensorFlow", *EVENTS, "reading both in turns: 1 of at least 8"]
SHOW = f"""
from tfdyno.cli.data.convert_progress import convert_progress
with convert_progress(quiet=False, verbose=False) as hear:
    for line in {LINES!r}:
        hear(line)
        import time; time.sleep(0.15)
"""


def show(*, quiet: bool = False, verbose: bool = False) -> None:
    with convert_progress(quiet=quiet, verbose=verbose) as hear:
        for line in LINES:
            hear(line)


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show(quiet=True)
    assert capsys.readouterr().err == ""


def test_no_terminal_gets_no_line_of_what_is_soon_over(capsys: pytest.CaptureFixture[str]) -> None:
    show()
    assert capsys.readouterr().err == ""


def test_no_terminal_gets_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    show()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("shard 1 of 2: 1 of 90")
    assert lines[-1].endswith("shard 2 of 2: 90 of 90")


def test_verbose_shows_every_stage_and_shard(capsys: pytest.CaptureFixture[str]) -> None:
    show(verbose=True)
    lines = [line.partition("s  ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "importing TensorFlow", "shard 1 of 2: 1 of 90", "shard 2 of 2: 60 of 90",
        "reading both in turns: 1 of at least 8",
    ]  # fmt: skip


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end() -> None:
    text = on_terminal(SHOW)
    assert "shard 2 of 2" in text
    assert "of 90" in text
    assert "reading both in turns" in text
    assert "\x1b[2K" in text
