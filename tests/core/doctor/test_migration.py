from __future__ import annotations

from dataclasses import replace

from tfdyno.core.doctor.finding import Evidence, Finding, FixStep
from tfdyno.core.doctor.migration import Hand, Migration

WHOLE = Migration(path="train.py", before="a", after="b", changes=(), hands=())


def test_a_migration_is_done_when_nothing_is_left_to_a_person() -> None:
    hand = Hand(line=1, text="hvd.join()", why="it ends apart", remedy="leave it out")
    finding = Finding(
        cause="code.tf1_session", verdict="likely", severity="error", summary="x", why="y",
        evidence=(Evidence(text="a", source="train.py:1"),), fix=(FixStep(text="b"),),
    )  # fmt: skip
    assert WHOLE.is_done
    assert not replace(WHOLE, hands=(hand,)).is_done
    assert not replace(WHOLE, findings=(finding,)).is_done
