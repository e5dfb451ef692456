"""runtime/jax_callbacks: what is told before the user's callbacks, and what behind them."""

from __future__ import annotations

from tests.runtime.jaxes import looked


def test_the_users_callbacks_stand_between() -> None:
    heard = looked("callbacks")
    assert heard[:4] == ["built", "train_begin", "epoch_begin", "own epoch_begin"]
    assert heard[4:7] == ["ran"] * 3
    assert heard[7:] == ["test_begin", "test_end", "epoch_ends", "own epoch_end", "epoch_end"]
