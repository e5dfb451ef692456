from __future__ import annotations

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.project.output import Made


def test_the_note_in_an_output_is_the_same_after_a_way_through_json() -> None:
    made = Made(
        step="train", key="ab", rests_on={"file train.py": "12"}, before={"data": "s1"}, stamp="s2",
        words=("tfdyno", "train"), headline="accuracy 0.9", duration_s=2.0, exit_code=1,
    )  # fmt: skip
    assert from_json(to_json(made), Made) == made
