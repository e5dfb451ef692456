"""core/device_mesh: axes as typed, the axis of the data, and meshes that do not fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.train.device_mesh import DeviceMesh, check_axes, filled, read_mesh


def test_a_mesh_reads_as_it_is_written() -> None:
    mesh = read_mesh("data=2, model=4")
    assert (mesh.names, mesh.sizes, mesh.count) == (("data", "model"), (2, 4), 8)
    assert read_mesh(str(mesh)) == mesh


def test_a_batch_is_split_along_data_or_batch_wherever_it_stands() -> None:
    assert read_mesh("model=4,batch=2").replica_count == 2
    assert read_mesh("model=4,batch=2").model_names == ("model",)
    assert read_mesh("model=4").replica_count == 1
    assert read_mesh("model=4").model_names == ("model",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data", "cannot be read; write each axis with its size"),
        ("data=0,model=2", "is not possible"),
        ("data=2,data=2", "axis data of the mesh is there twice"),
        ("data=2,model=x", "cannot be read"),
    ],
)
def test_a_mesh_that_cannot_be_is_told(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_mesh(text)


def test_without_a_mesh_all_devices_split_the_batch() -> None:
    assert str(filled(None, 4)) == "data=4"


def test_the_axis_of_the_data_takes_what_is_left() -> None:
    assert str(filled(read_mesh("model=2"), 8)) == "data=4,model=2"


@pytest.mark.parametrize(("text", "devices"), [("data=2,model=3", 4), ("model=3", 4)])
def test_a_mesh_that_does_not_fit_the_devices_is_told(text: str, devices: int) -> None:
    with pytest.raises(UsageError, match=r"does not fit: it has \d places.* have 4 devices"):
        filled(read_mesh(text), devices)


@given(sizes=st.lists(st.integers(1, 8), min_size=1, max_size=3))
def test_a_mesh_over_as_many_devices_is_taken_as_it_is(sizes: list[int]) -> None:
    names = ("data", "model", "other")[: len(sizes)]
    mesh = DeviceMesh(names=names, sizes=tuple(sizes))
    assert filled(mesh, mesh.count) == mesh
    assert mesh.replica_count == sizes[0]


def test_a_wrong_axis_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"axis of it 'modle' is not one of.*mean model\?"):
        check_axes(("", "modle"), ("data", "model"), "it")
    with pytest.raises(UsageError, match="splits two dimensions along model"):
        check_axes(("model", "model"), ("data", "model"), "it")
