"""Neither blocks nor learnt shapes change what is found: a plain scan finds the same."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rules.made import made, rule

from tfdyno.rules.log.explained import LogFacts, scan
from tfdyno.rules.log.reader import Reader
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
@given(lines=LINES, block_bytes=st.integers(200, 3000), share=st.sampled_from([0.0, 0.2, 1.0]))
def test_it_finds_what_a_plain_scan_finds(lines: list[str], block_bytes: int, share: float) -> None:
    text = "\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfdyno.rules.log.text.BLOCK_BYTES", block_bytes)
        patch.setattr("tfdyno.rules.log.unlike._MANY", share)
        patch.setattr("tfdyno.rules.log.index.REMEMBERED_BYTES", block_bytes)
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


def test_the_first_lines_are_kept_though_others_are_looked_at_before_them() -> None:
    # The first block teaches the shape of "cudnn q": in the second it is known, the others are not.
    known, slot = "cudnn q", Slot(needle="cudnn", match="", cap=3)
    reader = Reader([slot])
    reader.read(f"{known}\n".encode())
    others = [f"{letter * 5} cudnn" for letter in "ghijk"]
    reader.read("\n".join([known, *others]).encode())
    assert [line.number for line in slot.lines] == [1, 2, 3]


def test_lines_and_bytes_are_counted_whatever_parts_a_line_has() -> None:
    reader = Reader([])
    reader.read(b"one\n\rstill one\ntwo\n")
    reader.read(b"three\0")
    assert (reader.line_count, reader.byte_count, reader.nul_count) == (3, 25, 1)
