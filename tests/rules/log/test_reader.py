"""Neither blocks nor known templates change what is found: a plain scan finds the same."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rules.made import made, rule

from tfdyno.rules.log.explained import LogFacts, scan
from tfdyno.rules.log.reader import ENOUGH_LOOKS, Reader, template
from tfdyno.rules.log.slot import Slot
from tfdyno.rules.log.text import readable

HEAD = "2024-05-05 10:33:01.1279{:02d}: W tsl/dso_loader.cc:{}] "
MESSAGE = HEAD + "Could not load dynamic library 'libcudnn.so.{}'; dlerror: libcudnn.so.8: no file"
RULES = (
    rule("could not load dynamic library", r"library 'libcudnn\.so\.(?P<major>\d)'"),
    rule("could not load dynamic library", r"library 'libcublas"),
    rule("cudnn", r"cudnn"),
    rule("(137)"),
    rule(".so."),
    rule("loss", r"loss: (?P<loss>nan|inf)"),
    rule("显存"),
)
CAUSES = [made(f"a.n{number}", one) for number, one in enumerate(RULES)]
PIECES = (
    "step {} loss: 0.{}",
    "step {} loss: nan",
    "exit code (137) of worker {}",
    "Could not load dynamic library 'libcublas.so.{}'",
    "could not load dynamic",
    "library 'libcudnn.so.{}'",
    "CUDNN{}",
    '{{"log": "\\u001b cudnn {}\\n"}}',
    "显存不足 {}",
    "fine {}",
    "\rbar {} loss: inf",
    "",
)
LINES = st.lists(
    st.one_of(
        st.builds(lambda text, n: text.format(n, n), st.sampled_from(PIECES), st.integers(0, 99)),
        st.text("ghijk lmno.<", max_size=49),
    ),
    max_size=60,
)


def plain(text: str) -> dict[str, list[tuple[int, str]]]:
    """What a look at each line for each rule gives, where no line was wrapped."""
    found: dict[str, list[tuple[int, str]]] = {}
    numbered = enumerate(text.split("\n"), start=1)
    parts = ((number, part) for number, line in numbered for part in line.split("\r"))
    for (number, part), cause in itertools.product(parts, CAUSES):
        (one,) = cause.log
        slot = Slot(needle=one.needle, match=one.match, cap=1)
        texts = [(shown, shown.lower()) for shown in readable(part.encode())]
        if slot.found_in(texts) is not None:
            found.setdefault(cause.id, []).append((number, part))
    return found


def lines_of(log: LogFacts) -> dict[str, list[int]]:
    return {hits.cause: [line.number for line in hits.lines] for hits in log.hits}


@settings(max_examples=150, deadline=None)
@given(lines=LINES, block_bytes=st.integers(200, 3000))
def test_it_finds_what_a_plain_scan_finds(lines: list[str], block_bytes: int) -> None:
    text = "\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfdyno.rules.log.text.BLOCK_BYTES", block_bytes)
        patch.setattr("tfdyno.rules.log.reader.REMEMBERED_BYTES", block_bytes)
        pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
        log = scan(pieces, CAUSES)
    wanted = plain(text)
    assert lines_of(log) == {
        cause: [number for number, _ in found][:20] for cause, found in wanted.items()
    }
    counted = {hits.cause: hits.count for hits in log.hits if hits.count < 20}
    assert counted == {cause: len(found) for cause, found in wanted.items() if len(found) < 20}


@settings(max_examples=100, deadline=None)
@given(
    before=st.integers(0, 400),
    width=st.integers(50, 140),
    block_bytes=st.integers(8_000, 12_000),
    long=st.booleans(),
)
def test_a_wrapped_message_is_found_wherever_a_block_ends(
    before: int, width: int, block_bytes: int, long: bool
) -> None:
    noise = random.Random(before)
    words = ["".join(noise.choices("ghijklmnop ", k=90 if long else 40)) for _ in range(before)]
    message = MESSAGE.format(1, 64, 7)
    wrapped = [message[at : at + width] for at in range(0, len(message), width)]
    text = "\n".join([*words, *wrapped, HEAD.format(2, 65) + "done", *words])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfdyno.rules.log.text.BLOCK_BYTES", block_bytes)
        pieces = [text[at : at + 400] for at in range(0, len(text), 400)]
        hits = {one.cause: one for one in scan(pieces, CAUSES).hits}
    (line,) = hits["a.n0"].lines
    assert line.values == {"major": "7"}
    assert before < line.number <= before + len(wrapped)


def slot(needle: str, match: str = "", cap: int = 3) -> Slot:
    return Slot(needle=needle, match=match, cap=cap, counted=True)


def read(slots: list[Slot], *blocks: str) -> list[list[int]]:
    """Numbers of the lines that each slot keeps."""
    reader = Reader(slots)
    for block in blocks:
        reader.read(block.encode())
    return [[line.number for line in one.lines] for one in slots]


def test_time_stamps_and_numbers_leave_no_trace_in_a_template() -> None:
    first = b"2024-05-05 10:33:01.127918: I tsl/x.cc:64] Step 17 of 'run' 12.5"
    other = b'1999-12-31 23:59:59.000001: I tsl/x.cc:7] step 9 of "run" 0.0'
    assert template(first) == template(other) == b"--::.:itsl/x.cc:]stepofrun."
    assert template("显存 cuda\n".encode()) == "显存cuda\n".encode()


def test_a_needle_that_goes_on_in_another_one_is_found_with_it() -> None:
    slots = [slot("cudnn"), slot("cudnnlt"), slot("nnl")]
    assert read(slots, "a cudnnlt\nb cudnn") == [[1, 2], [1], [1]]


def test_a_needle_parted_by_a_line_end_is_found_beside_a_new_line_only() -> None:
    slots = [slot("not found", r"library .* not found")]
    lines = [f"{HEAD.format(1, 64)}the library libcudnn.so.8 was not fo", "und on this machine"]
    assert read(slots, "\n".join(lines)) == [[1]]
    assert read([slot("not found")], "not fo\nq\nund") == [[]]


def test_a_needle_of_digits_is_found() -> None:
    assert read([slot("137"), slot("loss")], "code 136\ncode 137 137\n\nloss 137") == [[2, 4], [4]]


def test_the_first_lines_are_kept_whatever_was_known_of_them() -> None:
    assert read([slot("cudnn")], "cudnn q\n", "cudnn q\nggg cudnn\nhhh cudnn") == [[1, 2, 3]]


def test_lines_of_a_settled_template_are_counted_and_not_read() -> None:
    nan, epoch = slot("loss", r"loss: nan"), slot("loss", r"epoch")
    Reader([nan, epoch]).read(b"step 1 loss: nan\n" * (ENOUGH_LOOKS + 100))
    assert (len(nan.lines), nan.count, epoch.count) == (3, ENOUGH_LOOKS + 100, 0)


def test_a_template_is_not_settled_before_its_slots_are_full() -> None:
    rare = slot("code", r"code 1\b", cap=2)
    Reader([rare]).read(b"code 1\n" + b"code 2\n" * (2 * ENOUGH_LOOKS) + b"code 1\n")
    assert [line.number for line in rare.lines] == [1, 2 * ENOUGH_LOOKS + 2]


def test_what_is_forgotten_in_a_full_memory_is_learnt_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tfdyno.rules.log.reader.REMEMBERED_BYTES", 100)
    assert read([slot("not found", cap=9)], *["lib not found\nkkk\njjj\n"] * 5) == [
        [1, 4, 7, 10, 13]
    ]


def test_lines_and_bytes_are_counted_whatever_parts_a_line_has() -> None:
    reader = Reader([])
    reader.read(b"one\n\rstill one\ntwo\n")
    reader.read(b"three\0")
    assert (reader.line_count, reader.byte_count) == (3, 25)
