"""jobs/holders/words: who holds a card, by name where it is known."""

from __future__ import annotations

from tests.jobs.holders.test_room import GIB, OTHER, card

from tfdyno.core.base.interval import Interval
from tfdyno.jobs.holders import words
from tfdyno.probe.holders.cards import Holder
from tfdyno.words.base.holders import holder_words, holders_words
from tfdyno.words.base.language import speaking

HIDDEN = Holder(pid=992)


def test_names_identifiers_users_and_sizes_are_told() -> None:
    bob = Holder(pid=8, name="python train.py", user="bob", memory_bytes=GIB)
    assert words.sentence(card(3 * GIB, OTHER, bob, HIDDEN)) == (
        "GPU 0 has 3 GiB of 80 GiB of memory free: python other.py (4711, 40 GiB), python train.py "
        "of bob (8, 1 GiB) and a process of another container or user (992) hold the rest"
    )


def test_many_processes_are_counted() -> None:
    many = tuple(Holder(pid=number, name="python") for number in range(1, 7))
    told = words.names(many)
    assert told == "python (1), python (2), python (3), python (4) and 2 more"
    assert "and" not in words.names(many[:1])


def test_what_the_driver_does_not_tell_is_said_so() -> None:
    assert words.holder_words(card(holders=None)) == (
        "the driver does not tell which processes hold the rest"
    )
    assert "another container or user" in words.holder_words(card(40 * GIB))
    assert "not told by the driver" in words.free_words(card(None))


def test_the_need_is_compared_with_the_fullest_card() -> None:
    held = (card(40 * GIB, OTHER), card(20 * GIB, OTHER))
    assert words.need_words(Interval(low=1 * GIB, best=5 * GIB, high=20 * GIB), held) == ""
    may = words.need_words(Interval(low=10 * GIB, best=15 * GIB, high=30 * GIB), held)
    assert may == (
        "The estimate of what this run takes, 10 GiB to 30 GiB, may be more than is free."
    )
    surely = words.need_words(Interval(low=21 * GIB, best=25 * GIB, high=30 * GIB), held)
    assert "is more than is free" in surely


def test_blame_names_the_processes_or_what_was_held() -> None:
    assert words.blame([card(40 * GIB, OTHER)]) == (
        "meanwhile python other.py (4711, 40 GiB) held memory of GPU 0"
    )
    assert words.blame([card(20 * GIB)]) == "meanwhile others held 60 GiB of GPU 0"


def test_sentences_are_joined_with_their_stops() -> None:
    assert words.told(["a b", "", "c."]) == "A b. C."


def test_a_note_is_told_in_chinese_and_kept_in_english() -> None:
    with speaking("zh"):
        held = card(20 * GIB, OTHER)
        need = words.need_words(Interval(low=10 * GIB, best=15 * GIB, high=30 * GIB), [held])
        note = words.told([words.sentence(held), need, words.growth_words("A=true")])
        assert note.startswith("GPU 0 has 20 GiB of 80 GiB of memory free: python other.py (4711")
        assert holders_words(note) == (
            "GPU 0 空闲显存 20 GiB（共 80 GiB）：其余由 python other.py (4711, 40 GiB) 占用。"
            "估计本次运行需要 10 GiB 至 30 GiB，可能超过空闲显存。"
            "因此本次运行按需占用显存（A=true）。"
        )
        hidden, untold = words.sentence(card(40 * GIB)), words.sentence(card(3 * GIB, holders=None))
        assert holder_words(hidden).endswith("应是其他容器或用户的进程")
        assert holder_words(untold).endswith("驱动未说明其余由哪些进程占用")
        assert holders_words(words.trouble_words("timeout")).endswith("NVML 没有响应（timeout）。")
        assert holders_words("Something new. And more.") == "Something new. And more."
    assert holders_words(note) == note
