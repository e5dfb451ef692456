"""Flags in one environment variable, joined without changing what the user has set."""

from __future__ import annotations

import shlex

from tfdyno.core.base.flags import flag_names, is_file_name, with_flags


def test_flags_are_added_behind_those_that_are_set() -> None:
    assert with_flags("", {"--a": "1"}) == "--a=1"
    assert with_flags("--b=2 --c", {"--a": "1"}) == "--b=2 --c --a=1"


def test_what_the_user_has_set_stays() -> None:
    assert with_flags("--a=7", {"--a": "1", "--b": "2"}) == "--a=7 --b=2"
    assert with_flags("--a", {"--a": "1"}) == "--a"


def test_a_flag_whose_name_only_begins_alike_is_another() -> None:
    assert with_flags("--dump_to_all=1", {"--dump_to": "x"}) == "--dump_to_all=1 --dump_to=x"


def test_a_variable_that_names_a_file_of_flags_stays() -> None:
    assert is_file_name("/etc/flags")
    assert not is_file_name("")
    assert not is_file_name("  --a=1")
    assert with_flags("/etc/flags", {"--a": "1"}) == "/etc/flags"


def test_a_value_with_blanks_and_quotes_is_one_value() -> None:
    told = with_flags("", {"--dir": '/tmp/a "b" c'})
    assert shlex.split(told) == ['--dir=/tmp/a "b" c']


def test_the_names_are_those_before_the_equals_sign() -> None:
    assert flag_names("--a=1 --b=x=y --c") == {"--a", "--b", "--c"}
