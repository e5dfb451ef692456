"""A training on stderr: a bar where there is a terminal, lines elsewhere."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tests.cli.terminal import on_terminal

from tfdyno.cli.train import train_progress as module
from tfdyno.cli.train.train_progress import train_progress
from tfdyno.core.train.device_mesh import DeviceMesh
from tfdyno.core.train.layout import Layout, Placed

if TYPE_CHECKING:
    import pytest

BEGIN = json.dumps({"event": "begin", "epochs": 2, "epoch": 1, "steps": 4})
STEP = json.dumps({"event": "steps", "epoch": 1, "epochs": 2, "step": 2, "steps": 4, "loss": 0.5})
EPOCH = json.dumps({"event": "epoch", "epoch": 1, "epochs": 2, "metrics": {"loss": 0.25}})
NOISE = "I0000 00:00:1795327159.121981    5220 port.cc:153] oneDNN custom operations are on."
SHOW = f"""
from tfdyno.cli.train.train_progress import train_progress
with train_progress(quiet=False, verbose=False) as shown:
    shown.progress("importing TensorFlow")
    shown.progress({BEGIN!r})
    shown.progress({STEP!r})
    shown.output("what [bold]the[/bold] script prints")
    shown.output({NOISE!r})
    shown.progress({EPOCH!r})
"""


def show(*, quiet: bool = False, verbose: bool = False) -> None:
    with train_progress(quiet=quiet, verbose=verbose) as shown:
        for line in ("importing TensorFlow", BEGIN, STEP, EPOCH):
            shown.progress(line)
        shown.output("printed")
        shown.output(NOISE)


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show(quiet=True)
    assert capsys.readouterr() == ("", "")


def test_elsewhere_every_epoch_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    show()
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert [line.split(" s  ")[-1] for line in lines] == ["epoch 1/2  loss 0.2500", "printed"]


def test_a_long_epoch_is_told_within(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    show()
    assert "epoch 1/2  2/4  loss 0.5000" in capsys.readouterr().err


def test_verbose_shows_every_event_and_tensorflows_greetings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(verbose=True)
    err = capsys.readouterr().err
    assert "importing TensorFlow" in err
    assert "epoch 1/2  2/4  loss 0.5000" in err
    assert "oneDNN" in err


def test_a_terminal_gets_a_bar_and_what_was_printed_above_it() -> None:
    text = on_terminal(SHOW)
    assert "what [bold]the[/bold] script prints" in text
    assert "epoch 1/2" in text
    assert "loss 0.2500" in text
    assert "oneDNN" not in text
    assert "\x1b[2K" in text  # the bar is gone at the end


def test_a_layout_is_a_table_before_the_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    layout = Layout(
        mesh=DeviceMesh(names=("model",), sizes=(2,)),
        weights=(Placed(path="a/kernel", shape=(8, 4), width_bytes=4),),
    )
    with train_progress(quiet=False, verbose=False) as shown:
        shown.progress(json.dumps({"event": "layout", "layout": asdict(layout)}))
        shown.output("[Gloo] Rank 0 is connected to 1 peer ranks.")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Mesh model=2, by your rules: each device holds 128 B of 128 B")
    assert "1 kernel matches no rule" in lines[1]
    assert lines[-1].split()[:2] == ["a/kernel", "8×4"]
