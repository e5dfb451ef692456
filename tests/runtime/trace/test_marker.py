from hypothesis import given
from hypothesis import strategies as st

from tfdyno.runtime.trace.marker import PRIMES, marker_batch, marker_of

sizes = st.sets(st.integers(min_value=0, max_value=5000), max_size=40)


@given(sizes)
def test_the_marker_divides_the_batch_and_no_other_dimension(dimensions: set[int]) -> None:
    batch, prime = marker_batch(dimensions)
    if prime:
        assert batch == 8 * prime
        assert all(size % prime for size in dimensions if size)
    else:
        assert all(any(size % p == 0 for size in dimensions if size) for p in PRIMES)


def test_an_ordinary_network_gets_296() -> None:
    assert marker_batch({224, 112, 56, 28, 14, 7, 3, 64, 2048, 1000}) == (296, 37)


def test_a_dimension_of_74_moves_to_the_next_prime() -> None:
    assert marker_batch({74}) == (328, 41)


def test_a_batch_given_by_the_user_is_marked_by_its_own_prime() -> None:
    assert marker_of(37, {10}) == 37
    assert marker_of(82, {10}) == 41
    assert marker_of(37, {74}) == 0
    assert marker_of(64, {10}) == 0
