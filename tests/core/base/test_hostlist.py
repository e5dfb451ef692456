"""Slurm's short form of host names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.hostlist import expand_hosts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("login", "login"),
        ("a,b", "a b"),
        ("n[1-3]", "n1 n2 n3"),
        ("gpu[08-11]", "gpu08 gpu09 gpu10 gpu11"),
        ("n[1,3-4]-ib,m2", "n1-ib n3-ib n4-ib m2"),
        ("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"),
    ],
)
def test_all_hosts_are_named_in_order(text: str, expected: str) -> None:
    assert expand_hosts(text) == tuple(expected.split())


@pytest.mark.parametrize("text", ["", "n[1-", "n]1[", "n[2-1]", "n[[1]]", "n[a-b]", "a,,b", "n[]"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        expand_hosts(text)


def test_a_list_without_end_is_refused() -> None:
    for text in ("n[1-99999]m[1-99999]", f"n[{'9' * 5000}]", "n" + "[1]" * 5000):
        with pytest.raises(UsageError, match="cannot be read"):
            expand_hosts(text)


@given(first=st.integers(0, 500), count=st.integers(1, 50), width=st.integers(1, 5))
def test_as_many_hosts_as_the_range_has(first: int, count: int, width: int) -> None:
    low, high = (str(number).zfill(width) for number in (first, first + count - 1))
    hosts = expand_hosts(f"n[{low}-{high}]")
    assert [int(host[1:]) for host in hosts] == list(range(first, first + count))
    assert all(len(host) > width for host in hosts)
