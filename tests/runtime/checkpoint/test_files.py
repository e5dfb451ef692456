"""A checkpoint is read back bit by bit, or passed over with its name."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.runtime.checkpoint.files import (
    Array,
    DamagedError,
    check_data,
    dtype_named,
    latest,
    list_checkpoints,
    read_arrays,
    read_marker,
)
from tfdyno.runtime.checkpoint.plain_json import sealed, unsealed
from tfdyno.runtime.checkpoint.writing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = (
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 "
    "complex128"
).split()
SMALL = "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz int4 uint4".split()


def content(step: int, serial: int | None = None, **more: object) -> dict[str, Any]:
    return {
        "step": step, "serial": step if serial is None else serial, "pinned": False, "epoch": 1,
        "step_in_epoch": 2, "seed": 3, "position": {"files": ["a"]}, "random": {},
        "history": {"loss": [0.5]}, "extra": {"callbacks": []}, **more,
    }  # fmt: skip


def written(folder: Path, step: int, serial: int | None = None, **values: Array) -> Path:
    values = values or {"w": np.full(5000, step, "float32")}
    return write_checkpoint(folder, content(step, serial), values, {})


def arrays(dtype: str) -> st.SearchStrategy[Array]:
    shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
    if dtype not in SMALL:
        return hnp.arrays(dtype, shapes)
    kind = np.dtype(getattr(ml_dtypes, dtype))
    return hnp.arrays(f"uint{8 * kind.itemsize}", shapes).map(lambda raw: raw.view(kind))


@given(
    st.dictionaries(st.text(max_size=8), st.sampled_from(PLAIN + SMALL).flatmap(arrays), max_size=5)
)
def test_every_name_shape_and_dtype_comes_back(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, Array]
) -> None:
    folder = tmp_path_factory.mktemp("round")
    extra = {"extra.best": np.arange(3)}
    found = read_marker(write_checkpoint(folder, content(1), values, extra))
    check_data(found)
    back = [(entry.name, array) for entry, array in read_arrays(found)]
    assert [name for name, _ in back] == [*values, *extra]
    assert [entry.name for entry in found.arrays] == ["extra.best"]
    for (_, array), value in zip(back, [*values.values(), *extra.values()], strict=True):
        assert (array.dtype, array.shape) == (value.dtype, value.shape)
        assert array.tobytes() == value.tobytes()
    shutil.rmtree(folder)


def test_the_data_file_is_numpys_own(tmp_path: Path) -> None:
    value = np.arange(12.0).reshape(3, 4)
    found = read_marker(written(tmp_path, 7, kernel=value.T, half=value.astype(ml_dtypes.bfloat16)))
    assert found.marker.name == "step-000000007.json"
    assert found.data.name == "step-000000007.npz"
    with np.load(found.data, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["000000"], value.T)
        assert archive["000001"].dtype == "uint16"
    assert [(e.name, e.shape, e.dtype) for e in found.variables] == [
        ("kernel", (4, 3), "float64"),
        ("half", (3, 4), "bfloat16"),
    ]
    assert (found.position.epoch, found.position.step_in_epoch, found.position.seed) == (1, 2, 3)
    assert (found.position.data, found.history) == ({"files": ["a"]}, {"loss": [0.5]})


def test_dtypes_by_name() -> None:
    assert dtype_named("float32") == np.float32
    assert dtype_named("bfloat16") == ml_dtypes.bfloat16


def test_the_newest_is_the_last_written_not_the_highest_step(tmp_path: Path) -> None:
    written(tmp_path, 300, serial=1)
    written(tmp_path, 150, serial=2)  # after going back
    (tmp_path / "step-notes.json").write_text("{}")
    found, damaged = list_checkpoints(tmp_path)
    assert ([c.step for c in found], damaged) == ([150, 300], {})
    newest = latest(tmp_path)
    assert newest is not None
    assert newest.step == 150


def test_no_checkpoint_no_answer(tmp_path: Path) -> None:
    assert latest(tmp_path) is None
    assert latest(tmp_path / "absent") is None


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    for step in (10, 20):
        written(folder, step)
    return folder


@given(
    name=st.sampled_from(["step-000000020.npz", "step-000000020.json"]),
    how=st.sampled_from(["flip", "cut", "grow", "remove", "zero"]),
    share=st.floats(0, 1, exclude_max=True),
)
def test_a_damaged_one_is_passed_over_and_named(
    tmp_path_factory: pytest.TempPathFactory, two: Path, name: str, how: str, share: float
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    shutil.copytree(two, folder, dirs_exist_ok=True)
    raw = bytearray((folder / name).read_bytes())
    place = int(share * len(raw))
    if how == "flip":
        raw[place] ^= 0x11
    elif how == "zero":
        raw[place:] = bytes(len(raw) - place)
    changed = raw[:place] if how == "cut" else raw + b"x" if how == "grow" else raw
    (folder / name).write_bytes(changed)
    if how == "remove":
        (folder / name).unlink()
    notes: list[str] = []
    found = latest(folder, notes)
    assert found is not None
    if changed != (two / name).read_bytes() or how == "remove":
        assert found.step == 10
        if how != "remove" or name.endswith("npz"):
            assert ["step-000000020 is damaged and left out" in note for note in notes] == [True]
    shutil.rmtree(folder)


def test_all_damaged_is_none_with_a_note_for_each(tmp_path: Path) -> None:
    for step in (1, 2):
        written(tmp_path, step)
    (tmp_path / "step-000000001.npz").write_bytes(b"")
    (tmp_path / "step-000000002.json").write_bytes(b'{"step":')
    notes: list[str] = []
    assert latest(tmp_path, notes) is None
    assert [note.partition(" is")[0] for note in notes] == ["step-000000002", "step-000000001"]
    assert "has 0 instead of" in notes[1]


def test_a_later_format_is_refused_not_called_damaged(tmp_path: Path) -> None:
    marker = written(tmp_path, 1)
    marker.write_bytes(sealed({**unsealed(marker.read_bytes()), "format": 2}))
    with pytest.raises(UsageError, match="has the format 2: this tfdyno reads 1"):
        latest(tmp_path)
    assert json.loads(marker.read_text())["format"] == 2


def test_data_that_change_after_the_check_are_a_sentence(tmp_path: Path) -> None:
    found = read_marker(written(tmp_path, 1))
    raw = bytearray(found.data.read_bytes())
    raw[len(raw) // 2] ^= 1
    found.data.write_bytes(raw)
    with pytest.raises(DamagedError, match="other content"):
        check_data(found)
    with pytest.raises(ToolError, match=r"cannot read .*Bad CRC-32"):
        list(read_arrays(found))
    with pytest.raises(ToolError, match="No such file"):
        list(read_arrays(replace(found, data_name="gone.npz")))
