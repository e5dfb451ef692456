from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.words.project.step_headline import MOST_CHARACTERS, step_headline

P99 = {"low": 0.007, "best": 0.00805, "high": 0.009}
EXPORT = [
    {"format": "savedmodel", "kept": True, "size_bytes": 2048, "accuracy_after": 0.91},
    {
        "format": "litert-int8",
        "kept": False,
        "size_bytes": 1024,
        "accuracy_after": None,
        "failures": ["it differs by 0.2"],
    },
]


@pytest.mark.parametrize(
    ("command", "document", "line"),
    [
        ("train", {"history": {"loss": [1.0, 0.25], "accuracy": [0.5, 0.9379]}, "steps": 88},
         "accuracy 0.9379 and loss 0.25 after 88 steps"),
        ("train", {"history": {"loss": [1.0], "val_loss": [2.0], "val_accuracy": [0.5],
                               "accuracy": [0.75]}, "steps": 1},
         "val_accuracy 0.5, accuracy 0.75 and val_loss 2 after 1 step"),
        ("train", {"history": {}, "steps": 0}, ""),
        ("bench", {"median_s": 0.00252, "throughput_per_s": 12700.4},
         "2.52 ms per step, 12,700 samples/s"),
        ("bench", {"median_s": 0.01, "throughput_per_s": 1.0, "comparison": {"verdict": "faster"}},
         "10.0 ms per step, 1 samples/s; against the other setting: faster"),
        ("diagnose", {"primary": {"summary": "It waits."}}, "It waits."),
        ("data convert", {"records": 1400, "shards": 8, "bytes": 2048},
         "1,400 records in 8 files, 2 KiB"),
        ("export", {"formats": EXPORT},
         "savedmodel (2 KiB, accuracy 0.91) and litert-int8 is not kept (it differs by 0.2)"),
        ("models add", {"id": "digits:1", "new": True}, "digits:1"),
        ("models add", {"id": "digits:1", "new": False}, "digits:1, which was there already"),
        ("serve", {"verdict": "good", "accepted_per_s": 1351.9, "p99_s": P99},
         "1,352 answers/s, 99 of 100 within 8.05 ms"),
        ("serve", {"verdict": "failed", "faults": ["3 answers were 500"]}, "3 answers were 500"),
        ("advise", {"headline": "Rent one T4."}, "Rent one T4."),
        ("python x.py", {"headline": "two\nlines"}, "two lines"),
        ("python x.py", {}, ""),
        ("python x.py", [1], ""),
    ],
)  # fmt: skip
def test_a_documents_answer_is_one_line(command: str, document: object, line: str) -> None:
    assert step_headline(command, document) == line


def test_a_long_answer_is_cut() -> None:
    line = step_headline("advise", {"headline": "x" * 999})
    assert len(line) == MOST_CHARACTERS
    assert line.endswith("…")


@given(
    st.sampled_from(["train", "bench", "export", "serve", "estimate", "models add", "diagnose"]),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(
            st.sampled_from(["history", "formats", "primary", "verdict", "id", "p99_s"]), inner),
    ),
)  # fmt: skip
def test_no_document_breaks_the_line(command: str, document: object) -> None:
    line = step_headline(command, document)
    assert "\n" not in line
    assert len(line) <= MOST_CHARACTERS
