from __future__ import annotations

import pytest

from tfdyno.core.choose.generation import Software, release_of


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("2.21.0", (2, 21, 0)), ("2.9", (2, 9)), ("2.16.0rc1", (2, 16, 0)), ("0.4.35", (0, 4, 35))],
)
def test_releases_compare_by_their_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert release_of(version) == numbers


def test_a_later_release_is_larger_though_its_text_is_not() -> None:
    assert release_of("2.9") < release_of("2.21")


@pytest.mark.parametrize("version", ["", "new", "x.1"])
def test_what_has_no_number_is_no_release(version: str) -> None:
    with pytest.raises(ValueError, match="is not a release"):
        release_of(version)


def test_software_is_named_as_people_write_it() -> None:
    one = Software(framework="tensorflow", version="2.21", generation="2026", chosen="newest")
    assert one.name == "TensorFlow 2.21"
    jax = Software(framework="jax", version="", generation="2026", chosen="asked")
    assert jax.name == "JAX"
