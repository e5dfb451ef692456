"""Which file is read of a folder, and what is said of the others."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import pytest
from tests.runtime.planted_profiles import Training, json_trace, planes_of, space

from tfdyno.core.base.errors import UsageError
from tfdyno.profile import files as profile_files
from tfdyno.profile.files import find_profile, load_profile

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = space(planes_of(Training(steps=2)))


def put(folder: Path, name: str, data: bytes = WHOLE) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def test_the_newest_run_is_read_by_its_date_and_not_by_the_time_of_its_copy(tmp_path: Path) -> None:
    new = put(tmp_path, "logs/plugins/profile/2026_11_22_09_28_41/vm.xplane.pb")
    old = put(tmp_path, "logs/plugins/profile/2026_11_21_09_28_41/vm.xplane.pb")
    os.utime(new, (0, 0))
    found = find_profile(tmp_path)
    assert (found.path, found.host_count) == (new, 1)
    assert found.notes == ("2 runs are in the folder: the newest, 2026_11_22_09_28_41, was read.",)
    assert old.exists()


def test_of_several_hosts_one_is_read_and_that_is_said(tmp_path: Path) -> None:
    run = "plugins/profile/2026_11_22_09_28_41"
    put(tmp_path, f"{run}/worker-0.xplane.pb")
    large = put(tmp_path, f"{run}/worker-1.xplane.pb", WHOLE + b"\x12\x04late")
    found = find_profile(tmp_path)
    assert (found.path, found.host_count) == (large, 2)
    assert found.notes == ("The run has profiles of 2 hosts: that of worker-1 was read.",)


def test_planes_are_read_rather_than_the_trace_beside_them(tmp_path: Path) -> None:
    put(tmp_path, "run/vm.trace.json.gz", json_trace(planes_of(Training())))
    planes = put(tmp_path, "run/vm.xplane.pb")
    assert find_profile(tmp_path).path == planes
    planes.unlink()
    assert find_profile(tmp_path).path.name == "vm.trace.json.gz"


def test_a_packed_file_is_read_like_the_plain_one(tmp_path: Path) -> None:
    plain = load_profile(put(tmp_path, "a.xplane.pb"))
    packed = load_profile(put(tmp_path, "b.xplane.pb.gz", gzip.compress(WHOLE)))
    assert plain.event_count == packed.event_count == 42  # 20 kernels, 20 launches, 2 markers


def test_what_is_named_as_packed_and_is_not_is_read_as_it_is(tmp_path: Path) -> None:
    assert load_profile(put(tmp_path, "plain.xplane.pb.gz")).event_count == 42
    with pytest.raises(UsageError, match="is no profile that can be read: its bytes are not laid"):
        load_profile(put(tmp_path, "text.xplane.pb.gz", b"this is no gzip"))
    with pytest.raises(UsageError, match="it is cut off or damaged: it cannot be unpacked"):
        load_profile(put(tmp_path, "more.xplane.pb.gz", gzip.compress(WHOLE) + b"more"))


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
def test_what_is_larger_than_any_profile_is_not_unpacked_nor_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(profile_files, "limit", lambda _name: 1e6)
    data = b"\x12\x04late" * 10**6  # 6 MB of warnings, 6 KB packed
    with pytest.raises(UsageError, match="more than 2 GiB, which no profile"):
        load_profile(put(tmp_path, "a.xplane.pb", gzip.compress(data) if packed else data))


def test_an_empty_folder_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no profile: no \*.xplane.pb or"):
        find_profile(tmp_path)
    with pytest.raises(UsageError, match=r"there is no .*nowhere"):
        find_profile(tmp_path / "nowhere")


def test_a_folder_given_as_a_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_profile(tmp_path)
