"""cli/worker_lines: a colour for each worker, and TensorFlow's greetings left out."""

from __future__ import annotations

import pytest

from tfdyno.cli.worker_lines import coloured, is_noise


def test_each_worker_has_its_colour() -> None:
    first, second = (coloured(f"[worker {n}] loss", colour=True) for n in (0, 1))
    assert first != second.replace("1]", "0]")
    assert first.endswith(" loss")
    assert coloured("[worker 0] loss", colour=False) == "[worker 0] loss"
    assert coloured("loss", colour=True) == "loss"


@pytest.mark.parametrize(
    ("line", "noise"),
    [
        ("[worker 1] WARNING: All log messages before absl::InitializeLog() is called", True),
        ("WARNING:tensorflow:Using CollectiveAllReduceStrategy eagerly has overhead", True),
        ("[worker 0] WARNING:tensorflow:5 out of the last 5 calls to f triggered", True),
        ("[worker 0] WARNING:tensorflow:your model has no loss", False),
        ("[worker 1] epoch 3", False),
    ],
)
def test_only_greetings_are_noise(line: str, noise: bool) -> None:
    assert is_noise(line) is noise
