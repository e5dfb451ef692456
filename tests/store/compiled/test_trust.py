"""Code is loaded only from where nobody else can put any."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tfdyno.store.compiled.trust import is_open, refusal

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_of_ones_own_is_trusted_though_it_is_not_there_yet(tmp_path: Path) -> None:
    assert refusal(tmp_path) == ""
    assert refusal(tmp_path / "new" / "compiled") == ""


def test_a_folder_that_all_can_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert refusal(tmp_path) == f"others can write to {tmp_path} (mode 777)"


def test_a_folder_above_that_all_can_write_is_refused(tmp_path: Path) -> None:
    inner = tmp_path / "compiled"
    inner.mkdir(mode=0o700)
    tmp_path.chmod(0o777)
    assert refusal(inner) == f"others can write to {tmp_path} (mode 777)"


def test_a_sticky_folder_above_is_no_danger_but_one_that_is_used_itself(tmp_path: Path) -> None:
    inner = tmp_path / "compiled"
    inner.mkdir(mode=0o700)
    tmp_path.chmod(0o1777)
    assert refusal(inner) == ""
    assert "others can write" in refusal(tmp_path)


def test_a_link_is_judged_by_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    assert refusal(tmp_path / "link") == f"others can write to {tmp_path / 'open'} (mode 777)"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    inner = tmp_path / "compiled"
    inner.mkdir()
    os.chown(inner, 12345, 12345)
    assert refusal(inner) == f"{inner} belongs to another user"
    assert refusal(inner / "deeper") == f"{inner} belongs to another user"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_group_may_write_where_it_is_nobody_but_the_owner(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o664)
    os.chown(file, 12345, 12345)  # without an entry among users and groups
    assert is_open(file.stat())
    file.chmod(0o644)
    assert not is_open(file.stat())
