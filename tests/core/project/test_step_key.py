from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.project.step_key import change_words, key_of

RESTS = st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=6)


@given(RESTS, st.randoms())
def test_the_order_of_what_it_rests_on_changes_no_key(rests: dict[str, str], draw: object) -> None:
    names = list(rests)
    draw.shuffle(names)  # type: ignore[attr-defined]
    assert key_of({name: rests[name] for name in names}) == key_of(rests)


@given(RESTS, RESTS)
def test_different_facts_have_different_keys(a: dict[str, str], b: dict[str, str]) -> None:
    assert (key_of(a) == key_of(b)) == (a == b)


@given(RESTS, RESTS)
def test_a_change_is_told_in_words_exactly_where_there_is_one(
    a: dict[str, str], b: dict[str, str]
) -> None:
    assert bool(change_words(a, b)) == (a != b)


def test_the_key_is_the_same_on_every_machine() -> None:
    # printf '%s' '[["a","1"],["b","\u00e4"]]' | sha256sum
    assert key_of({"b": "ä", "a": "1"}) == (
        "d4850f5e2fce13975cacba13054f3ccd6deb7592011ba0bc89159ac59992cb0e"
    )


def test_what_changed_is_said_as_a_person_would() -> None:
    before = {"file train.py": "aa", "option epochs": "5", "step data": "11", "keras": "3.1"}
    now = {"file train.py": "bb", "option epochs": "6", "step data": "22", "keras": "3.1"}
    assert change_words(before, now) == "train.py changed; option epochs 5 → 6; data ran anew"


def test_what_came_and_what_went_is_said() -> None:
    assert change_words({"file a.py": "1"}, {"file b.py": "2"}) == "b.py is new; a.py is gone"
    assert (
        change_words({"step a": "1"}, {"step b": "2"}) == "b is now needed; a is no longer needed"
    )
    assert change_words({"option x": "1"}, {"option y": "2"}) == (
        "option y 2 is new; option x 1 is gone"
    )


def test_many_changes_are_counted_and_long_values_cut() -> None:
    now = {f"option o{number}": "x" * 99 for number in range(5)}
    told = change_words({}, now)
    assert told.endswith("; and 2 more")
    assert max(map(len, told.split("; "))) < 60
