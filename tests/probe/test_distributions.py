from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.machine_facts import MachineFacts
from tfdyno.probe.distributions import NAME, distributions, installed, tensorflow_owners

if TYPE_CHECKING:
    from tests.probe.conftest import Build

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
