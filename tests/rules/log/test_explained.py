"""A log of any size, encoding and wrapping gives the same facts."""

from __future__ import annotations

import json
import textwrap
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.made import made, rule
from tests.turns import loops_of

from tfdyno.rules.causes import all_causes
from tfdyno.rules.log.explained import KEPT, LogFacts, Watch, scan
from tfdyno.rules.log.slot import LONGEST_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

CUDNN = made(
    "lib.cudnn",
    rule(
        "loaded runtime cudnn library",
        r"library: (?P<found>[\d.]*\d) but source was compiled with: (?P<wanted>[\d.]*\d)",
    ),
)
LINE = (
    "2022-05-05 10:33:01.127918: E tensorflow/stream_executor/cuda/cuda_dnn.cc:361] Loaded runtime "
    "CuDNN library: 8.0.4 but source was compiled with: 8.1.0. CuDNN library needs to have "
    "matching major version and equal or higher minor version."
)
BEFORE = "Epoch 1/10\nEpoch 2/10\n"


def only(log: LogFacts) -> tuple[int, dict[str, str], int]:
    """Number of the first line, values and count of the one rule that was met."""
    (hits,) = log.hits
    return hits.lines[0].number, dict(hits.lines[0].values), hits.count


EXPECTED = (3, {"found": "8.0.4", "wanted": "8.1.0"}, 1)


def folded(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        LINE + "\r",
        f"\x1b[31m{LINE[:80]}\x1b[0m{LINE[80:]}\x1b[K",
        LINE.replace("Loaded runtime", "Loaded\x1b[1m runtime"),
        LINE.replace("E tensor", "[worker-3] pod/train-0 E tensor"),
        f"> {LINE}",
        json.dumps({"log": LINE + "\n", "stream": "stderr", "time": "2024-01-01T00:00:00Z"}),
        "2024-01-01T00:00:00Z stderr F " + json.dumps({"log": f"\x1b[31m{LINE}\x1b[0m"}),
        json.dumps({"text": ["one\n", LINE + "\n"]}),
        LINE + "x" * 300_000,
        "x" * 300_000 + " " + LINE,
    ],
)  # fmt: skip
def test_a_line_is_found_in_any_dress(text: str) -> None:
    number, values, count = only(scan([BEFORE + text + "\nbye\n"], [CUDNN]))
    assert (number, values, count) == EXPECTED


@pytest.mark.parametrize("width", [80, 100, 120, 132])
def test_a_line_that_a_terminal_wrapped_is_put_together(width: int) -> None:
    number, values, count = only(scan([BEFORE + folded(LINE, width) + "\nbye\n"], [CUDNN]))
    assert abs(number - 3) <= 2
    assert (values, count) == EXPECTED[1:]


def test_a_line_wrapped_at_words_and_quoted_is_put_together() -> None:
    text = "\n".join("> " + part for part in textwrap.wrap(LINE, 90))
    assert only(scan([text], [CUDNN]))[1] == EXPECTED[1]


def test_short_neighbours_are_not_put_together() -> None:
    text = "loaded runtime\ncudnn library: 8.0.4 but source was compiled with: 8.1.0"
    assert not scan([text], [CUDNN]).hits


def test_a_fresh_line_of_a_log_is_never_glued_to_the_one_before() -> None:
    cause = made("a.b", rule("could not load", r"could not load.*libcudnn"))
    first = (
        "2022-05-05 10:33:01.127918: W tensorflow/stream_executor/dso_loader.cc:64] Could not load"
    )
    second = (
        "2022-05-05 10:33:01.127999: I tensorflow/stream_executor/dso_loader.cc:53] libcudnn.so.8"
    )
    assert not scan([f"{first}\n{second}\n"], [cause]).hits
    assert scan([f"{first} libcudnn"], [cause]).hits


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encoding_and_line_ends_do_not_matter(encoding: str, end: str) -> None:
    data = f"Epoch 1/10{end}Epoch 2/10{end}{LINE}{end}".encode(encoding)
    number, values, count = only(scan([data], [CUDNN]))
    assert (values, count) == EXPECTED[1:]
    assert number == (1 if end == "\r" else 3)


def test_bytes_that_are_no_text_do_not_stop_it() -> None:
    data = b"\xff\xfe\x00\x81" * 3 + b"\n\x80abc\n" + LINE.encode() + b"\n\x00\x00\n"
    assert only(scan([b"x\n" + data], [CUDNN]))[1] == EXPECTED[1]


def test_an_empty_log_has_nothing() -> None:
    log = scan([], all_causes())
    assert (log.hits, log.errors, log.line_count, log.byte_count) == ((), (), 0, 0)


@given(st.lists(st.integers(1, 200), max_size=8))
def test_it_does_not_matter_where_the_log_is_cut_into_pieces(sizes: list[int]) -> None:
    data = (BEFORE + LINE + "\r\nläuft\r\n").encode()
    chunks, at = [], 0
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    chunks.append(data[at:])
    log = scan(chunks, [CUDNN])
    assert only(log) == EXPECTED
    assert log.line_count == 4


def test_a_progress_bar_is_one_line_and_its_end_is_seen() -> None:
    bar = "\r".join(f"{step}/400 [====>...] - ETA: 3s - loss: 0.{step}" for step in range(400))
    number, values, count = only(scan([f"one\n{bar}\r{LINE}\nlast\n"], [CUDNN]))
    assert (number, values, count) == (2, *EXPECTED[1:])
    assert scan([f"one\n{bar}\nlast\n"], []).line_count == 3


def test_lines_beyond_the_kept_ones_are_counted_for_their_own_rule() -> None:
    needle = "could not load dynamic library"
    causes = [
        made("a.cudart", rule(needle, r"library '(?P<soname>libcudart\S+)'")),
        made("a.nvinfer", rule(needle, r"library '(?P<soname>libnvinfer\S+)'")),
    ]
    text = "W Could not load dynamic library 'libcudart.so.11'\n" * 900
    text += "W Could not load dynamic library 'libnvinfer.so.7'\n" * 700
    found = {hits.cause: hits for hits in scan([text * 3], causes).hits}
    assert {cause: hits.count for cause, hits in found.items()} == {
        "a.cudart": 2700, "a.nvinfer": 2100,
    }  # fmt: skip
    assert all(len(hits.lines) == KEPT for hits in found.values())
    assert [line.number for line in found["a.nvinfer"].lines][:2] == [901, 902]


def test_a_needle_found_late_after_many_lines_like_it_is_still_found() -> None:
    cause = made("num.nan", rule("loss", r"loss: (?P<loss>nan|inf)"))
    text = "".join(f"step {step} loss: 0.{step}\n" for step in range(5000)) + "step 9 loss: nan\n"
    assert only(scan([text], [cause])) == (5001, {"loss": "nan"}, 1)


def test_texts_that_rules_ask_for_anywhere_are_seen() -> None:
    cause = made("a.b", rule("broke", also=("mixed_float16", "other"), unless=("loaded runtime",)))
    log = scan(["policy MIXED_float16\n", LINE], [cause])
    assert log.seen == {"mixed_float16", "loaded runtime"}


def test_evidence_of_a_very_long_line_is_the_part_that_speaks() -> None:
    log = scan(["y " * 20_000 + LINE + " z" * 20_000], [CUDNN])
    text = log.hits[0].lines[0].text
    assert "Loaded runtime CuDNN library: 8.0.4" in text
    assert len(text) <= LONGEST_TEXT + 2


def test_a_watch_keeps_its_lines_in_order_up_to_its_cap() -> None:
    watch = Watch(name="limit", needle="limit:", match=r"limit:\s+(?P<bytes>\d+)", cap=2)
    log = scan(["Limit:   1\nx\nLimit: 2\nLimit: 3\n"], [], [watch])
    assert [(one.number, one.values["bytes"]) for one in log.watched["limit"]] == [
        (1, "1"),
        (3, "2"),
    ]


def test_lines_that_look_like_errors_are_kept_for_the_user() -> None:
    text = "fine\nTraceback (most recent call last):\n  x\nmypkg.OddError: the flux is off\n"
    assert [line.text for line in scan([text], []).errors] == ["mypkg.OddError: the flux is off"]


def progress(block_count: int) -> Iterator[bytes]:
    block = "".join(
        f"{step}/400 [{'=' * (step % 30)}>{'.' * (30 - step % 30)}] - ETA: {step % 60}s - "
        f"loss: 0.{step * 7919 % 10_000:04d} - accuracy: 0.{step * 104_729 % 10_000:04d}\n"
        for step in range(12_000)
    ).encode()
    for _ in range(block_count):
        yield block


def test_memory_does_not_grow_with_the_log() -> None:
    rules = all_causes()
    peaks = []
    for block_count in (4, 16):
        tracemalloc.start()
        scan(progress(block_count), rules)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_a_log_without_repetition_stays_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfdyno.rules.log.reader.REMEMBERED_BYTES", 1 << 20)
    letters = "ghijklmnopqrstuvwxyz"

    def noise() -> Iterator[str]:
        for number in range(60_000):
            word = "".join(letters[number // 20**place % 20] for place in range(4))
            yield f"{word * 10}\n"

    tracemalloc.start()
    log = scan([*noise(), LINE], [CUDNN])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert only(log)[1] == EXPECTED[1]
    assert peak < 40 << 20


def test_a_megabyte_of_a_training_log_is_read_in_a_few_hundredths_of_a_second() -> None:
    rules = all_causes()
    chunks = list(progress(10))
    megabytes = scan(chunks, rules).byte_count / 1e6
    assert loops_of(lambda: scan(chunks, rules)) / megabytes < 6.0  # 2 alone


@given(st.binary(max_size=3000))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    log = scan([data], all_causes())
    assert log.line_count >= 0
