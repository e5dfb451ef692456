from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import tfdyno
from tfdyno.probe.machine.revision import revision

if TYPE_CHECKING:
    from pathlib import Path

VERSION = tfdyno.__version__
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SHORT = COMMIT[:10]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "src" / "tfdyno"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("A = 1\n")
    return folder


def git(package: Path, *words: str) -> str:
    if not shutil.which("git"):
        pytest.skip("there is no git")
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER")
           for what in ("NAME", "EMAIL")}  # fmt: skip
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", *words],
        cwd=package.parents[1],
        env={**os.environ, **who, **plain},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def write(package: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = package.parents[1] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.mark.parametrize(
    "files",
    [
        {".git/HEAD": COMMIT},
        {".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": f"{COMMIT}\n"},
        {".git/HEAD": "ref: refs/heads/a/b",
         ".git/packed-refs": f"# pack-refs\n{'9' * 40} refs/heads/b\n{COMMIT} refs/heads/a/b\n"},
        {".git": "gitdir: elsewhere/worktrees/one\n",
         "elsewhere/worktrees/one/HEAD": "ref: refs/heads/main",
         "elsewhere/worktrees/one/commondir": "../..\n",
         "elsewhere/refs/heads/main": COMMIT},
    ],
)  # fmt: skip
def test_the_commit_is_read_from_files(package: Path, files: dict[str, str]) -> None:
    write(package, files)
    assert revision(package) == f"{VERSION} ({SHORT})"


@pytest.mark.parametrize(
    "files",
    [
        {},
        {".git/HEAD": "ref: refs/heads/unborn"},
        {".git/HEAD": "no commit at all"},
        {".git": "gitdir: /nowhere"},
    ],
)
def test_without_a_commit_there_is_the_version_only(package: Path, files: dict[str, str]) -> None:
    write(package, files)
    assert revision(package) == VERSION


def test_a_wheel_inside_somebody_elses_repository_has_no_commit(tmp_path: Path) -> None:
    installed = tmp_path / "site-packages" / "tfdyno"
    installed.mkdir(parents=True)
    write(installed, {".git/HEAD": COMMIT})
    assert revision(installed) == VERSION


def test_a_package_that_differs_from_its_commit_is_told(package: Path) -> None:
    git(package, "init", "-q")
    git(package, "add", ".")
    git(package, "commit", "-q", "-m", "one")
    commit = git(package, "rev-parse", "HEAD")[:10]
    assert revision(package) == f"{VERSION} ({commit})"
    write(package, {"README.md": "elsewhere"})
    assert revision(package) == f"{VERSION} ({commit})"
    write(package, {"src/tfdyno/a.py": "A = 2\n"})
    assert revision(package) == f"{VERSION} ({commit}, changed)"
    write(package, {"src/tfdyno/a.py": "A = 1\n", "src/tfdyno/new.py": ""})
    assert revision(package) == f"{VERSION} ({commit}, changed)"


def test_a_machine_without_git_still_tells_the_commit(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(package, {".git/HEAD": COMMIT})
    monkeypatch.setenv("PATH", "")
    assert revision(package) == f"{VERSION} ({SHORT})"


def test_this_very_package_tells_its_version() -> None:
    assert revision().startswith(VERSION)
