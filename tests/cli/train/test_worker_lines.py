"""cli/worker_lines: a colour for each worker, and TensorFlow's greetings left out."""

from __future__ import annotations

import pytest

from tfdyno.cli.train.worker_lines import Requests, coloured, is_noise


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
        ("[worker 0] [Gloo] Rank 0 is connected to 1 peer ranks. Expected number of", True),
        ("[worker 1] 1 is connected to 1 peer ranks. Expected number of connected peer", True),
        ("[worker 1] epoch 3", False),
    ],
)
def test_only_greetings_are_noise(line: str, noise: bool) -> None:
    assert is_noise(line) is noise


def test_a_request_to_end_is_shown_once() -> None:
    requests = Requests()
    late = "training train.py is asked to end as its time is over and has 600 s for it"
    same = "[worker 1] training train.py is asked to end and has 600 s for it"
    lines = [late, same, "[worker 1] loss", "[worker 1] loss", same]
    assert [requests.is_repeated(line) for line in lines] == [False, True, False, False, True]
    assert not requests.is_repeated(same.replace("train.py", "other.py"))
