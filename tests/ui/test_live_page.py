from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.ui.browsing import READY, WIDER, needs_browser, shown
from tests.ui.running import running

from tfdyno.core.choose.workload import Workload
from tfdyno.store import run_events
from tfdyno.store.run_events import EVENTS_FILE, RunEvents
from tfdyno.store.run_folder import RunFolder, RunRecord

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chromium import Page

RECORD = RunRecord(workload=Workload(reference="train.py", kind="script"))
CARD = {"index": 0, "utilisation_ratio": 0.875, "memory_bytes": 3 * 2**30, "power_w": 61.2}
LOAD = {"cpu_ratio": 0.5, "memory_bytes": 2**30, "cards": [CARD]}


def event(kind: str, **more: object) -> str:
    return json.dumps({"event": kind, "epoch": 1, "epochs": 2, "steps": 100, **more})


@needs_browser
@pytest.mark.browser
def test_a_training_is_followed_while_it_writes(
    tab: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_events, "EVENT_S", 0.0)
    run = RunFolder(tmp_path / "first")
    run.prepare()
    run.write(RECORD)
    with (
        running("--folder", str(tmp_path)) as server,
        run.held(),
        RunEvents(run.path, lambda: LOAD) as events,
    ):
        tab.size(1180, 1000)
        tab.open("about:blank")
        tab.open(server.url.replace("/#", "/live#"))
        tab.wait(READY)
        assert "waits for its first step" in shown(tab, ".run .tiles")
        events.take(event("begin", samples_per_step=32))
        for step in (10, 20, 30):
            events.take(event("steps", step=step, loss=1.0 / step, samples_per_s=640.0, eta_s=90))
        tab.wait("document.querySelector('.run polyline')?.points.length === 3")
        told = shown(tab, ".run .tiles")
        for part in ("30 / 100", "epoch 1 of 2", "0.0333", "50 ms", "640 samples/s", "1.5 min",
                     "88 %", "3 GiB, 61 W"):  # fmt: skip
            assert part in told, part
        metrics = {"loss": 0.02, "val_loss": 0.25}
        events.take(event("epoch", step=100, metrics=metrics, samples_per_s=640.0, beside_s=5.0))
        tab.wait("document.querySelectorAll('.run circle').length === 1")
        assert shown(tab, ".run .note").startswith("Of the last epoch 5 s went beside")
        assert "50 %" in shown(tab, ".run .note")  # 100 steps of 50 ms are 5 s as well
        with (run.path / EVENTS_FILE).open("a") as half:
            half.write(event("steps", step=1)[:20])
        for width_px in (360, 1180):
            tab.size(width_px, 900)
            assert tab.run(WIDER) == []
        tab.run("document.getElementById('language').click();")
        tab.wait(f"document.documentElement.lang === 'zh' && {READY}")
        assert "第 1 轮，共 2 轮" in shown(tab, ".run .tiles")
        tab.open("about:blank")  # it would ask on


@needs_browser
@pytest.mark.browser
def test_where_nothing_runs_the_page_says_so(tab: Page, tmp_path: Path) -> None:
    with running("--folder", str(tmp_path)) as server:
        tab.open("about:blank")
        tab.open(server.url.replace("/#", "/live?lang=en#"))
        tab.wait(READY)
        assert shown(tab, "#told").startswith("Nothing runs below this folder")
        tab.open("about:blank")
