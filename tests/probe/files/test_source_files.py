from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.probe.files import source_files
from tfdyno.probe.files.source_files import find, read

if TYPE_CHECKING:
    from pathlib import Path


def put(root: Path, *names: str, text: str = "x = 1\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def test_what_is_run_or_installed_is_found_and_the_rest_is_not(tmp_path: Path) -> None:
    wanted = (
        "Dockerfile",
        "a.py",
        "b/n.ipynb",
        "pyproject.toml",
        "requirements-gpu.txt",
        "requirements/x.txt",
    )
    put(tmp_path, *wanted, "data.csv", "notes.txt", "m.h5")
    assert sorted(find(tmp_path).paths) == sorted(wanted)


def test_environments_caches_and_git_are_skipped(tmp_path: Path) -> None:
    put(
        tmp_path,
        "a.py",
        ".git/h.py",
        ".venv/b.py",
        "lib/site-packages/c.py",
        "__pycache__/d.py",
        "node_modules/e.py",
    )
    put(tmp_path, "mine/pyvenv.cfg", "mine/lib/f.py", "conda/conda-meta/x.json", "conda/g.py")
    assert find(tmp_path).paths == ("a.py",)


def test_one_file_is_found_by_itself_whatever_its_name(tmp_path: Path) -> None:
    put(tmp_path, "train")
    files = find(tmp_path / "train")
    assert (files.paths, read(files.root, files.paths[0])) == (("train",), "x = 1\n")


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    put(tmp_path, "a/b.py")
    (tmp_path / "a" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "self.py").symlink_to(tmp_path / "self.py")
    files = find(tmp_path)
    assert sorted(files.paths) == ["a/b.py", "self.py"]
    with pytest.raises(ToolError, match=r"self\.py was not read"):
        read(tmp_path, "self.py")


def test_a_large_folder_is_bounded_and_reports_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "MOST_FILES", 450)
    put(tmp_path, *(f"{number % 7}/f{number}.py" for number in range(600)))
    steps: list[int] = []
    files = find(tmp_path, steps.append)
    assert len(files.paths) == 450
    assert steps == [200, 400]
    assert files.notes[0].startswith("Only the first 450 files")


def test_an_empty_folder_is_a_note(tmp_path: Path) -> None:
    files = find(tmp_path)
    assert files.paths == ()
    assert files.notes == (f"{tmp_path} holds no Python file, notebook or requirements file.",)


def test_what_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file or folder .*gone"):
        find(tmp_path / "gone")
    with pytest.raises(UsageError, match="cannot look at"):
        find(tmp_path / "x\0y")
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        find(tmp_path / "pipe.py")
    with pytest.raises(ToolError, match=r"pipe\.py was not read: it is not an ordinary file"):
        read(tmp_path, "pipe.py")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"x = 1\r\ny = 2\r", "x = 1\ny = 2\n"),
        (b"\xef\xbb\xbfx = 1", "x = 1"),
        (b"# -*- coding: latin-1 -*-\n# caf\xe9", "# -*- coding: latin-1 -*-\n# café"),
        (b"# coding: unheard-of\nx", "# coding: unheard-of\nx"),
        ("x = 'ü'".encode("utf-16"), "x = 'ü'"),
        (b"# caf\xe9, badly written", "# caf\ufffd, badly written"),
        (b"", ""),
    ],
)
def test_text_is_read_in_its_encoding(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "a.py").write_bytes(content)
    assert read(tmp_path, "a.py") == text


@pytest.mark.parametrize("content", [b"\x7fELF\0\0", b"\xff\xfe\xff", bytes(range(128, 256)) * 9])
def test_what_is_not_text_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.py").write_bytes(content)
    with pytest.raises(ToolError, match=r"^a\.py was not read: "):
        read(tmp_path, "a.py")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "a.py").open("wb") as file:
        file.truncate(source_files.LARGEST_BYTES + 1)
    with pytest.raises(ToolError, match=r"a\.py was not read: it has 1 MB"):
        read(tmp_path, "a.py")
