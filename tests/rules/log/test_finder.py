"""Many texts are found in one pass as if each were looked for alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.rules.log.finder import Finder, places

TEXT = st.binary(max_size=40).map(lambda data: bytes(b"abc\n"[code % 4] for code in data))
TEXTS = st.lists(st.text("abc", min_size=1, max_size=8).map(str.encode), max_size=12)


@given(TEXTS, TEXT)
def test_every_place_of_every_text_is_found_once(texts: list[bytes], text: bytes) -> None:
    wanted = sorted(
        (at, one) for one in set(texts) for at in range(len(text)) if text.startswith(one, at)
    )
    assert sorted(Finder(texts).find(text)) == wanted


def test_a_forgotten_text_is_found_no_more() -> None:
    finder = Finder([b"cudnn", b"cudnnlt"])
    finder.forget(b"cudnn")
    assert list(finder.find(b"cudnnlt cudnn")) == [(0, b"cudnnlt")]


def test_a_text_across_a_line_end_is_found_beside_wanted_lines_only() -> None:
    lines = [b"xxcud", b"nnyy", b"zz", b"cud", b"nn"]
    assert list(places(Finder([b"cudnn"]), lines, [1])) == [(0, 1, b"cudnn")]
    assert list(places(Finder([b"cudnn"]), lines, [0, 4])) == [(0, 1, b"cudnn"), (3, 4, b"cudnn")]
    assert list(places(Finder([b"cudzz"]), [b"cud", b"q", b"q", b"q", b"zz"], [0, 4])) == []
