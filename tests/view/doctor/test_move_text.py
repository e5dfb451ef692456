"""view/doctor/move_text: the answer first, then hands, the diff, and why."""

from __future__ import annotations

from tfdyno.core.doctor.migration import Change, Hand, Migration
from tfdyno.view.doctor.move_text import move_text


def migration(*hands: Hand) -> Migration:
    return Migration(
        path="a.py", before="x\n", after="y\n", hands=hands, beside=("b.py",), diff="-x\n+y\n",
        changes=(Change(line=1, name="tf.x", why="JAX traces it"),),
    )  # fmt: skip


def test_the_answer_says_what_writes_and_runs_it() -> None:
    text = move_text(migration(), commands=["write", "run"])
    assert text.splitlines()[:3] == [
        "1 change moves it to Keras' JAX backend; write and run it by", "  write", "  run",
    ]  # fmt: skip
    assert "-x\n+y" in text
    assert "line 1, tf.x: JAX traces it." in text
    assert text.endswith("Migrate as well: b.py, which it imports.")


def test_what_was_written_is_named_without_the_diff() -> None:
    text = move_text(migration(), commands=["run"], written=["a.py", "a.tensorflow.py"])
    assert text.startswith("1 change made in a.py (a.tensorflow.py is the old one); run it by\n")
    assert "+y" not in text


def test_places_for_a_person_come_before_the_diff() -> None:
    hand = Hand(line=3, text="tf.y()", why="it draws numbers", remedy="write z")
    text = move_text(migration(hand), commands=["run"], refused="new.py")
    assert text.startswith("1 place needs your hand before it moves to JAX; 1 change can be made.")
    assert "new.py is not written." in text
    assert "a.py:3: tf.y()\n  it draws numbers; write z.\n" in text
    assert text.index("a.py:3") < text.index("+y")
