from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.probe.base.distributions import (
    NAME,
    distributions,
    installed,
    module_version,
    tensorflow_owners,
)
from tfdyno.probe.base.host import this_host
from tfdyno.probe.base.python import by_asking

if TYPE_CHECKING:
    from pathlib import Path

    from tests.probe.conftest import Build

HEADER = """#define TF_MAJOR_VERSION 2
#define TF_MINOR_VERSION 9
#define TF_PATCH_VERSION 3
"""
SITE = "/e/lib/python3.11/site-packages"


def test_names_of_metadata_folders_are_read() -> None:
    names = [
        "ml_dtypes-0.5.1.dist-info", "torch-2.1.0+cu118.dist-info", "six-1.16.0-py3.8.egg-info",
        "tf_nightly-2.22.0.dev20260101.dist-info", "keras", "README.txt",
    ]  # fmt: skip
    found = [(match[1], match[2]) if (match := NAME.match(one)) else None for one in names]
    assert found == [
        ("ml_dtypes", "0.5.1"), ("torch", "2.1.0+cu118"), ("six", "1.16.0"),
        ("tf_nightly", "2.22.0.dev20260101"), None, None,
    ]  # fmt: skip


def test_the_first_folder_of_the_path_wins(build: Build) -> None:
    host = build({"/a/x-1.0.dist-info/RECORD": "", "/b/x-2.0.dist-info/RECORD": ""})
    assert installed(host, ("/a", "/b"))["x"].version == "1.0"


def test_two_packages_that_own_tensorflow_are_both_named(build: Build) -> None:
    record = "tensorflow/__init__.py,sha256=x,1\n"
    files = {f"{SITE}/{name}-2.15.0.dist-info/RECORD": record
             for name in ("tensorflow", "tensorflow_cpu")}  # fmt: skip
    host = build(files)
    assert tensorflow_owners(host, installed(host, (SITE,))) == ("tensorflow", "tensorflow-cpu")


def test_keras_2_counts_where_there_is_no_other(build: Build) -> None:
    files = {f"{SITE}/tf_keras-2.19.0.dist-info/RECORD": "", f"{SITE}/rich-1.dist-info/RECORD": ""}
    part = distributions(build(files, python="/e/bin/python"), MachineFacts())
    assert part.fields["keras"] == "2.19.0"
    assert [one.name for one in part.fields["python"].distributions] == ["tf-keras"]


def test_without_a_folder_it_is_not_run(build: Build) -> None:
    part = distributions(build({}, python="/none/bin/python"), MachineFacts())
    assert (part.state, part.reason) == ("not_run", "there is no site-packages folder to read")


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"tools/pip_package/setup.py": "import x\n_VERSION = '2.21.0'\n_OLD = '1'\n"}, "2.21.0"),
        ({"include/tensorflow/core/public/version.h": HEADER}, "2.9.3"),
        ({"include/tensorflow/core/public/version.h": HEADER[:40]}, ""),
        ({"__init__.py": ""}, ""),
    ],
)
def test_the_version_of_a_module_without_metadata_is_what_it_was_built_with_or_unknown(
    build: Build, files: dict[str, str], version: str
) -> None:
    host = build({f"/x/tensorflow/{name}": text for name, text in files.items()})
    assert module_version(host, "/x/tensorflow") == version
    assert module_version(host, "") == ""


def test_tensorflow_on_the_path_variable_is_found_without_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")]
    subprocess.run(command, check=True)
    module = tmp_path / "own" / "tensorflow"
    (module / "python").mkdir(parents=True)
    (module / "__init__.py").write_text("raise AssertionError('it was imported')\n")
    host = this_host(str(tmp_path / "env" / "bin" / "python"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    by_asking.cache_clear()
    part = distributions(host, MachineFacts())
    assert part.fields["tensorflow"] == ""  # unknown
    assert part.fields["python"].tensorflow_folder == str(module)
    (tmp_path / "own" / "tensorflow-2.20.0.dist-info").mkdir()
    by_asking.cache_clear()
    part = distributions(host, MachineFacts())
    assert (part.fields["tensorflow"], part.fields["python"].tensorflow_folder) == ("2.20.0", "")
    (module / "__init__.py").unlink()  # a folder of that name is no TensorFlow
    (tmp_path / "own" / "tensorflow-2.20.0.dist-info").rmdir()
    by_asking.cache_clear()
    assert distributions(host, MachineFacts()).fields["python"].tensorflow_folder == ""
    by_asking.cache_clear()
