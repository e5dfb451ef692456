"""What the user's code reads is noted; what Python, its packages and we read is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

WATCH = """
import json, runpy, sys
from tfdyno.process.reads import noted_reads
with noted_reads() as reads:
    runpy.run_path(sys.argv[1], run_name="__main__")
open(sys.argv[2], "w").write(json.dumps([reads.paths(), sorted(reads.variables)]))
"""


def noted(folder: Path, code: str, **variables: str) -> tuple[list[str], list[str]]:
    """Run a script in a process of its own, for an audit hook stays as long as that."""
    script = folder / "train.py"
    script.write_text(code)
    result = folder / "noted.json"
    subprocess.run(
        [sys.executable, "-c", WATCH, str(script), str(result)],
        cwd=folder, env={**os.environ, **variables}, check=True,
    )  # fmt: skip
    paths, names = json.loads(result.read_bytes())
    return [str(Path(path).relative_to(folder)) for path in paths], names


def test_files_are_noted_whoever_opens_them_for_the_script(tmp_path: Path) -> None:
    (tmp_path / "width.txt").write_text("8")
    (tmp_path / "depth.txt").write_text("8")
    (tmp_path / "more.npy").write_bytes(b"")
    code = (
        "import os, pathlib, numpy\n"
        "pathlib.Path('width.txt').read_text(); open(b'depth.txt').close()\n"
        "try:\n    numpy.load('more.npy')\nexcept (EOFError, ValueError):\n    pass\n"
    )
    assert noted(tmp_path, code) == (["depth.txt", "more.npy", "width.txt"], [])


def test_what_the_script_writes_itself_or_deletes_is_not_noted(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "open('log.csv', 'w').write('1'); open('log.csv').read()\n"
        "open('gone', 'x').close(); open('gone').close(); os.remove('gone')\n"
    )
    assert noted(tmp_path, code) == ([], [])


def test_what_is_looked_for_in_vain_or_opened_to_read_and_write_is_noted(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"8")
    code = (
        "import os\n"
        "try:\n    open('settings.json')\nexcept FileNotFoundError:\n    pass\n"
        "open('weights.bin', 'r+b').read()\n"
    )
    assert noted(tmp_path, code) == (["settings.json", "weights.bin"], [])


def test_a_copy_of_the_environment_asks_for_none_of_what_a_terminal_sets(tmp_path: Path) -> None:
    _, names = noted(tmp_path, "import os\n{**os.environ}\n", WIDTH_A="8", SHLVL="3", OLDPWD="/")
    assert "WIDTH_A" in names
    assert not {"SHLVL", "OLDPWD", "PWD", "_"} & set(names)


def test_imports_are_not_noted_but_a_module_that_is_read_as_text_is(tmp_path: Path) -> None:
    for name in ("layers_of_a_test", "settings_of_a_test"):
        (tmp_path / f"{name}.py").write_text("WIDTH = 8\n")
    code = "import json, email.mime, layers_of_a_test\nexec(open('settings_of_a_test.py').read())\n"
    assert noted(tmp_path, code) == (["settings_of_a_test.py"], [])


def test_folders_that_are_listed_are_noted(tmp_path: Path) -> None:
    (tmp_path / "photos" / "rose").mkdir(parents=True)
    code = "import os, glob\nlist(os.walk('photos')); os.listdir('photos/rose')\n"
    assert noted(tmp_path, code) == (["photos", "photos/rose"], [])


def test_variables_are_noted_that_the_script_asks_for_by_itself(tmp_path: Path) -> None:
    code = (
        "import argparse, os, shutil, numpy\n"
        "os.getenv('WIDTH_A'); os.environ.get('WIDTH_B'); 'WIDTH_C' in os.environ\n"
        "os.environ['WIDTH_D']; argparse.ArgumentParser(prog='x').format_help()\n"
        "shutil.get_terminal_size()\n"
    )
    found = noted(tmp_path, code, WIDTH_D="1")
    assert found == ([], ["WIDTH_A", "WIDTH_B", "WIDTH_C", "WIDTH_D"])
