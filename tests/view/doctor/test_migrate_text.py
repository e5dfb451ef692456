from __future__ import annotations

from tfdyno.core.doctor.finding import Evidence, Finding, FixStep
from tfdyno.core.doctor.migration import Change, Hand, Keeping, Migration, MigrationStep, Support
from tfdyno.view.doctor.migrate_text import keep_text, migrate_text

CHANGES = (
    Change(line=3, name="hvd.size()", why="the number of replicas"),
    Change(line=9, name="hvd.size()", why="the number of replicas"),
)
DIFF = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-n = hvd.size()\n+n = replicas\n"
RUN = ("tfdyno migrate train.py --write train.py", "tfdyno launch train.py --nodes 2")
HAND = Hand(line=7, text="hvd.join()", why="processes end apart", remedy="leave it out")
FINDING = Finding(
    cause="code.tf1_session", verdict="likely", severity="error", summary="Keras 3 has no session.",
    why="It runs without.", evidence=(Evidence(text="x", source="train.py:5"),),
    fix=(FixStep(text="Delete it."),),
)  # fmt: skip


def migration(**given: object) -> Migration:
    basic = {"path": "train.py", "before": "n = hvd.size()\n", "after": "n = replicas\n",
             "changes": CHANGES, "hands": (), "diff": DIFF}  # fmt: skip
    return Migration(**{**basic, **given})  # type: ignore[arg-type]


def told(found: Migration, *, written: tuple[str, ...] = (), colour: bool = False) -> str:
    return migrate_text(found, commands=RUN[bool(written) :], keep_command="tfdyno migrate --keep",
                        written=written, colour=colour)  # fmt: skip


def test_the_answer_comes_first_and_says_what_to_type() -> None:
    lines = told(migration()).splitlines()
    assert lines[0] == "2 changes make it a plain Keras 3 script; write and run it by"
    assert lines[1:3] == [f"  {one}" for one in RUN]
    assert DIFF.strip() in told(migration())
    assert "  lines 3, 9, hvd.size(): the number of replicas.\n" in told(migration())


def test_what_is_written_is_named_and_shown_no_more() -> None:
    text = told(migration(), written=("train.py", "train.horovod.py"))
    assert text.startswith(
        "2 changes made in train.py (train.horovod.py is the old one); run it by\n"
    )
    assert "--write" not in text
    assert "@@" not in text


def test_places_for_a_person_come_with_line_reason_and_remedy() -> None:
    text = told(migration(hands=(HAND,)))
    assert text.startswith("1 place needs your hand before it can be launched; 2 changes can be")
    assert "train.py:7: hvd.join()\n  processes end apart; leave it out.\n" in text
    assert "tfdyno launch" not in text


def test_what_keras_3_needs_besides_is_told_with_its_line() -> None:
    text = told(migration(findings=(FINDING,), beside=("feed.py",)))
    assert "Keras 3 needs 1 more by hand" in text
    assert "Keras 3 needs more (train.py:5): Keras 3 has no session. Delete it." in text
    assert "Migrate as well: feed.py" in text


def test_colour_marks_the_lines_of_the_diff() -> None:
    text = told(migration(), colour=True)
    assert "\x1b[31m-n = hvd.size()\x1b[0m" in text
    assert "\x1b[32m+n = replicas\x1b[0m" in text


def test_how_to_keep_it_lists_what_was_seen_and_each_command() -> None:
    seen = Support(
        tensorflow="2.15.1", keras="2.15", builds="yes", trains="fit is right", source="x"
    )
    step = MigrationStep(text="Build it.", command="pip install horovod", source="x")
    lines = keep_text(Keeping(support=(seen,), install=(step,), start=())).splitlines()
    assert "  TensorFlow 2.15.1, Keras 2.15: builds: yes; fit is right." in lines
    assert lines[lines.index("  Build it.") + 1] == "    pip install horovod"
