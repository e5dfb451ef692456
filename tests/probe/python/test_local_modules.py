from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.probe.python.local_modules import local_modules, modules_of

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def found(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in local_modules(folder / "main.py")]


def test_modules_beside_a_script_are_found_and_others_are_not(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "import os, a\nfrom b import c\n", "a.py": "", "b.py": "",
                     "unused.py": ""})  # fmt: skip
    assert found(tmp_path) == ["a.py", "b.py"]


def test_what_a_module_imports_counts_and_a_circle_ends(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "import a", "a.py": "import b", "b.py": "import a, main"})
    assert found(tmp_path) == ["a.py", "b.py"]


def test_packages_count_with_all_on_the_way(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "main.py": "def later():\n    from net.layers.dense import Dense\n",
            "net/__init__.py": "", "net/layers/__init__.py": "from . import shapes",
            "net/layers/dense.py": "from ..base import Base\nfrom .shapes import x",
            "net/layers/shapes.py": "", "net/base.py": "", "net/other.py": "",
        },
    )  # fmt: skip
    assert found(tmp_path) == [
        "net/__init__.py", "net/base.py", "net/layers/__init__.py", "net/layers/dense.py",
        "net/layers/shapes.py",
    ]  # fmt: skip


def test_a_name_out_of_a_package_may_be_a_module(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "from net import layers", "net/layers.py": ""})
    assert found(tmp_path) == ["net/layers.py"]


def test_what_cannot_be_parsed_imports_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "import a\nfrom", "a.py": ""})
    assert found(tmp_path) == []
    assert local_modules(tmp_path / "gone.py") == ()


def test_relative_imports_above_the_folder_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "from ....far import x\nfrom . import y\n", "y.py": ""})
    assert found(tmp_path) == ["y.py"]


def test_a_module_is_its_files_with_all_on_the_way_and_what_they_import(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/model.py": "import shared\nfrom .net import Net\n",
                     "pkg/net/__init__.py": "", "pkg/unused.py": "", "shared.py": ""})  # fmt: skip
    paths = [str(path.relative_to(tmp_path)) for path in modules_of("pkg.model", tmp_path)]
    assert paths == ["pkg/__init__.py", "pkg/model.py", "pkg/net/__init__.py", "shared.py"]
    assert modules_of("keras", tmp_path) == ()
