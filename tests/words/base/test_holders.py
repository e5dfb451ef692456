"""Sentences about who holds a card are matched one by one; jobs/holders makes them in its test."""

from __future__ import annotations

from tfdyno.words.base.holders import HOLDERS, holder_words, holders_words
from tfdyno.words.base.language import speaking

FREE = "GPU 1 has 1 GiB of 24 GiB of memory free"


def test_what_is_not_told_is_no_name_of_a_process() -> None:
    """Both end in ``hold the rest``: the sentence that says more is looked for first."""
    untold = f"{FREE}: the driver does not tell which processes hold the rest"
    with speaking("zh"):
        assert (
            holder_words(untold)
            == "GPU 1 空闲显存 1 GiB（共 24 GiB）：驱动未说明其余由哪些进程占用"
        )
        assert holder_words(f"{FREE}: a (1) and b (2) hold the rest") == (
            "GPU 1 空闲显存 1 GiB（共 24 GiB）：其余由 a (1) and b (2) 占用"
        )


def test_a_note_with_a_new_sentence_stays_whole() -> None:
    note = f"{FREE}: a (1) holds the rest. Nobody has translated this."
    with speaking("zh"):
        assert holders_words(note) == note
    assert len(HOLDERS) == len(set(HOLDERS))
