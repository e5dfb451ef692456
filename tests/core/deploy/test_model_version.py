"""core/model_version: names, which version is in use, and what a collection may take."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.model_version import (
    Artefact,
    Lineage,
    ModelVersion,
    Promotion,
    StoredFile,
    checked_name,
    collectable,
    in_use,
    parse_id,
)


def version(number: int, label: str = "") -> ModelVersion:
    files = (StoredFile(path="a", size_bytes=3, sha256="x"),) * 2
    artefact = Artefact(kind="keras", name="model.keras", digest="d", files=files)
    return ModelVersion(
        name="m", version=number, path=Path("p"), artefact=artefact, lineage=Lineage(),
        added_at="", label=label,
    )  # fmt: skip


def promoted(*numbers: int) -> list[Promotion]:
    return [Promotion(action="promote", version=one, at="") for one in numbers]


def back(number: int) -> Promotion:
    return Promotion(action="rollback", version=number, at="")


@pytest.mark.parametrize(
    ("text", "expected"), [("cnn", ("cnn", None)), ("a.b-c_1:12", ("a.b-c_1", 12))]
)
def test_a_name_may_have_a_version_behind_a_colon(
    text: str, expected: tuple[str, int | None]
) -> None:
    assert parse_id(text) == expected


@pytest.mark.parametrize("text", ["cnn:", "cnn:0", "cnn:-1", "cnn:x", "cnn:1.5", "cnn:²", "c:1:2"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no version: versions are 1, 2, 3"):
        parse_id(text)


@pytest.mark.parametrize("name", ["", "a/b", ".a", "a b", "é", "-a", "a" * 101, "a\n"])
def test_a_name_that_no_path_or_url_takes_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is no name of a model"):
        checked_name(name)


def test_a_roll_back_goes_down_the_pile_of_promotions() -> None:
    assert in_use([]) == ()
    assert in_use(promoted(1, 2, 3)) == (1, 2, 3)
    assert in_use([*promoted(1, 2, 3), back(2)]) == (1, 2)
    assert in_use([*promoted(1, 2, 3), back(2), back(1), *promoted(4)]) == (1, 4)


def test_a_roll_back_over_a_removed_version_takes_off_all_above_its_goal() -> None:
    # 3 was removed while 2 was in use for the second time: the pile was 1, 2.
    assert in_use([*promoted(1, 2, 3, 2), back(1)]) == (1,)


def test_a_collection_leaves_those_in_use_the_newest_and_the_labelled() -> None:
    versions = [version(n, label="gold" if n == 2 else "") for n in range(1, 9)]
    # in use 4, before it 1; the newest two 7 and 8; labelled 2
    gone = collectable(versions, (3, 1, 4), keep=2)
    assert [one.version for one in gone] == [3, 5, 6]


@given(
    count=st.integers(0, 30),
    pile=st.lists(st.integers(1, 30), max_size=6),
    keep=st.integers(1, 9),
    labelled=st.sets(st.integers(1, 30)),
)
def test_no_collection_takes_what_it_must_leave(
    count: int, pile: list[int], keep: int, labelled: set[int]
) -> None:
    versions = [version(n, label="x" if n in labelled else "") for n in range(1, count + 1)]
    gone = {one.version for one in collectable(versions, pile, keep)}
    assert not gone & {*pile[-2:], *labelled}
    assert all(count - number >= keep for number in gone)
    left = count - len(gone)
    assert left <= keep + 2 + len(labelled)


def test_the_size_is_that_of_all_files() -> None:
    assert (version(3).artefact.size_bytes, version(3).id) == (6, "m:3")
