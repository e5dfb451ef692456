"""What a class made here says is what one of the standard library says."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from tfdyno.core.base.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    name: str
    size: float = 1.5
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:  # noqa: PLW1641  (made beside)
    name: str = "a"
    read: Any = dataclasses.field(default=None, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    pass


@dataclass(slots=True)
class Counter:
    count: int = 0


def twin(kind: type) -> type:
    """Return the same class as the standard library makes it."""
    fields = [(one.name, one.type, one) for one in dataclasses.fields(kind)]
    return dataclasses.make_dataclass(kind.__name__, fields, frozen=True, slots=True, kw_only=True)


def test_it_is_shown_as_by_the_standard_library() -> None:
    given: dict[str, Any] = {"name": "a'b", "parts": (1, 2)}
    assert repr(Card(**given)) == repr(twin(Card)(**given))
    assert repr(Nothing()).endswith("Nothing()")


def test_equal_fields_of_one_class_are_equal_and_hash_alike() -> None:
    one, same, other = Card(name="a"), Card(name="a"), Card(name="a", size=2.0)
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != twin(Card)(name="a")
    assert one != object()
    assert len({one, same, other}) == 2
    assert Nothing() == Nothing()


def test_not_a_number_is_itself_as_in_a_tuple() -> None:
    one = Card(name="a", size=float("nan"))
    assert one == dataclasses.replace(one)


def test_what_a_class_writes_itself_stays() -> None:
    assert Part(name="b", read=1) == "b"
    assert hash(Part(read=1)) == hash(Part(read=2))
    assert repr(Part(read=1)) == "Part(name='a')"


def test_it_is_frozen_has_slots_and_can_be_copied() -> None:
    one = Card(name="a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.name = "b"  # type: ignore[misc]
    assert not hasattr(one, "__dict__")
    assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))
    assert dataclasses.asdict(one) == {"name": "a", "size": 1.5, "parts": ()}


def test_other_arguments_are_the_standard_librarys() -> None:
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError):
        hash(counter)
