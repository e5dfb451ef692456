"""A name means one card or is told what it may mean; a prefix never decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.catalog import names
from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

CARDS = {
    "a100-pcie-80gb": "A100 PCIe 80 GB",
    "a100-sxm4-80gb": "A100 SXM4 80 GB",
    "h200-sxm": "H200 SXM",
    "rtx-3060-12gb": "GeForce RTX 3060 12 GB",
    "rtx-3060-8gb": "GeForce RTX 3060 8 GB",
    "rtx-4090": "GeForce RTX 4090",
}
KNOWN = names.Names(
    slugs=CARDS,
    exact={
        "a100sxm480gb": "a100-sxm4-80gb",  # as NVML names it
        "4090": "rtx-4090",
        **{names.normalise(slug): slug for slug in CARDS},
    },
)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("nvidia a100-SXM4_80GB", "a100sxm480gb"),
        ("Tesla T4", "t4"),
        ("NVIDIA Corporation", ""),
    ],
)
def test_a_name_is_compared_without_case_signs_and_the_maker(name: str, plain: str) -> None:
    assert names.normalise(name) == plain


@given(st.text())
def test_a_normalised_name_stays_as_it_is(name: str) -> None:
    once = names.normalise(name)
    assert once == once.lower()
    assert set(once) <= set("abcdefghijklmnopqrstuvwxyz0123456789")


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("rtx-4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("4090", "rtx-4090"),  # an alias
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("A100 SXM 80gb", "a100-sxm4-80gb"),  # sxm is enough for sxm4
        ("80gb pcie a100", "a100-pcie-80gb"),  # in any order
        ("H200", "h200-sxm"),  # all its words are those of one card
    ],
)
def test_one_card_is_the_answer(name: str, slug: str) -> None:
    assert names.resolve(name, KNOWN) == slug


@pytest.mark.parametrize("slug", CARDS)
def test_every_slug_and_every_display_name_means_its_card(slug: str) -> None:
    assert names.resolve(slug, KNOWN) == slug
    assert names.resolve(CARDS[slug], KNOWN) == slug


def test_several_cards_are_listed_and_none_is_taken() -> None:
    with pytest.raises(UsageError) as told:
        names.resolve("RTX 3060", KNOWN)
    assert str(told.value) == (
        "'RTX 3060' means 2 GPUs; choose one of rtx-3060-12gb, rtx-3060-8gb."
    )


def test_a_word_without_a_number_names_no_card() -> None:
    with pytest.raises(
        UsageError, match=r"^'pcie' is no name of a GPU; did you mean a100-pcie-80gb\?$"
    ):
        names.resolve("pcie", KNOWN)


def test_a_long_list_is_cut_and_counted() -> None:
    many = {f"rtx-{number}": f"RTX {number}" for number in range(100, 115)}
    with pytest.raises(UsageError, match=r"means 15 GPUs; choose one of rtx-100, .* and 3 more\."):
        names.resolve("rtx", names.Names(slugs=many, exact={}))


@pytest.mark.parametrize("name", ["MI300X", "RX 7900", "Gaudi 3", "tpu v5", "Apple M3", "Radeon"])
def test_a_card_of_another_maker_is_told_so(name: str) -> None:
    with pytest.raises(UsageError, match="is not an NVIDIA GPU: tfdyno knows NVIDIA GPUs only"):
        names.resolve(name, KNOWN)


def test_a_slip_is_told_with_the_nearest_names() -> None:
    with pytest.raises(UsageError, match=r"did you mean rtx-4090\? \('tfdyno gpus' lists all\)"):
        names.resolve("rtx-4900", KNOWN)
    with pytest.raises(UsageError, match=r"there is no GPU 'zzz' in the catalogue; 'tfdyno gpus'"):
        names.resolve("zzz", KNOWN)


@pytest.mark.parametrize("name", ["", " rtx-4090", "-rtx-4090", "rtx-4090\u2122", "４０９０"])
def test_nothing_of_a_name_is_dropped_in_silence(name: str) -> None:
    with pytest.raises(UsageError, match="there is no GPU"):
        names.resolve(name, KNOWN)


@given(st.text(max_size=20))
def test_any_text_is_a_card_or_a_clear_error(name: str) -> None:
    try:
        found = names.resolve(name, KNOWN)
    except UsageError as error:
        told = str(error)
    else:
        assert found in CARDS
        return
    assert repr(name)[1:-1] in repr(told)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("fast,no-such-card,short,rule\n", "line 2: there is no GPU 'no-such-card'"),
        ("FAST,h200-sxm,short,rule\nfast,rtx-4090,short,rule\n", "line 3: 'fast' means two GPUs"),
    ],
)
def test_a_corrupt_table_of_aliases_is_told_with_its_line(
    rows: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "aliases.csv").write_text(f"alias,gpu_slug,kind,source\n{rows}")
    monkeypatch.setattr(names, "DATA", tmp_path)
    with pytest.raises(TfdynoError, match=message) as told:
        names.read(CARDS)
    assert isinstance(told.value, ToolError)


def test_a_display_name_never_takes_the_place_of_an_alias_or_a_slug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "aliases.csv").write_text("alias,gpu_slug,kind,source\nTwin,b-1,short,rule\n")
    monkeypatch.setattr(names, "DATA", tmp_path)
    read = names.read({"b-1": "B 1", "c-2": "Twin"})
    assert read.exact == {"twin": "b-1", "b1": "b-1", "c2": "c-2"}
