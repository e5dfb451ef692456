from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tfdyno.cli.main import main

HIDING = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.partition(".")[0])
sys.meta_path.insert(0, Missing())
from tfdyno.cli.main import main
sys.exit(main({words!r}))
"""


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(missing: str) -> None:
    code = HIDING.format(hidden={missing}, words=["ui", "--no-browser"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"tfdyno: the page needs starlette and uvicorn: {missing} is not installed; "
        "run pip install 'tfdyno[ui]'.\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.py"], "there is no file nothing.py"),
        (["keras"], "names no workload"),
        (["keras:ResNet50", "--", "--lr", "1"], "keras:ResNet50 takes no arguments"),
        (["--port", "99999"], "is not possible"),
        (["--folder", "nowhere"], "there is no folder nowhere"),
        (["--port", "-1"], "is not possible"),
    ],
)
def test_wrong_use_is_one_sentence_before_anything_starts(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ui", "--no-browser", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert sentence in told.err
    assert told.err.count("\n") == 1


def test_as_json_the_ready_line_is_a_document() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tfdyno", "ui", "--port", "0", "--no-browser", "--json", "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    assert json.loads(process.stdout.readline())["url"].startswith("http://127.0.0.1:")
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
