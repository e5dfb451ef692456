"""Attributes of others have other values in a block, and their own after it."""

from __future__ import annotations

import contextlib

import pytest

from tfdyno.runtime.base.replaced import replaced, to_the_end


class Base:
    name = "base"
    other = 1


class Derived(Base):
    pass


def test_a_block_that_fails_leaves_everything_as_it_was() -> None:
    seen = []
    with contextlib.suppress(KeyError), replaced((Base, "name", "new"), (Base, "other", 2)):
        seen += [Base.name, Base.other]
        raise KeyError
    assert (seen, Base.name, Base.other) == (["new", 2], "base", 1)


def test_what_a_class_inherits_it_inherits_again() -> None:
    with replaced((Derived, "name", "own")):
        assert (Derived.name, Base.name) == ("own", "base")
    assert "name" not in vars(Derived)


def test_an_object_has_the_method_of_its_class_again() -> None:
    one = Derived()
    with replaced((one, "name", "own")):
        assert (one.name, Derived.name) == ("own", "base")
    assert vars(one) == {}


def test_of_two_values_for_one_name_the_last_holds_and_neither_stays() -> None:
    with replaced((Base, "name", "first"), (Base, "name", "last")):
        assert Base.name == "last"
    assert Base.name == "base"


def test_what_is_not_there_is_not_replaced() -> None:
    with pytest.raises(AttributeError), replaced((Base, "name", "new"), (Base, "missing", 1)):
        pass
    assert Base.name == "base"


def test_a_change_to_the_end_outlives_its_caller() -> None:
    class Own(Base):
        pass

    to_the_end(replaced((Own, "name", "kept")))
    assert Own.name == "kept"
