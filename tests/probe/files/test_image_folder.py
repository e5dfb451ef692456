"""probe/image_folder: images in the order and with the labels of Keras, and what is refused."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from tests.runtime.forks import forked

from tfdyno.core.base.errors import UsageError
from tfdyno.probe.files.image_folder import FORMATS, image_folder

if TYPE_CHECKING:
    from pathlib import Path

KERAS = """
import json, sys
from keras.src.utils import dataset_utils, image_dataset_utils
formats = image_dataset_utils.ALLOWLIST_FORMATS
paths, labels, classes = dataset_utils.index_directory(
    sys.argv[1], "inferred", formats=formats, shuffle=False, verbose=False)
print(json.dumps([paths, [int(label) for label in labels], classes, formats]))
"""
FILES = (
    "b/2.jpg", "b/10.png", "b/a.GIF", "b/z/1.bmp", "b/a/3.jpeg", "b/.hidden.jpg", "b/notes.txt",
    "a b/ü.jpg", "a b/.deep/4.png", ".git/x.jpg", "top.jpg", "empty/readme.md", "B/1.webp",
)  # fmt: skip


def make(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = make(tmp_path / "source", *FILES)
    make(tmp_path / "elsewhere", "5.png", "in/6.png")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "b" / "linked").symlink_to(tmp_path / "elsewhere")
    return folder


@pytest.mark.tf
def test_files_labels_and_classes_are_those_of_keras(source: Path) -> None:
    paths, labels, classes, formats = json.loads(forked(KERAS, str(source)))
    found = image_folder(source)
    assert [str(source / one.path) for one in found.files] == paths
    assert [one.label for one in found.files] == labels
    assert list(found.classes) == classes
    assert list(FORMATS) == formats


def test_what_is_left_out_is_counted(source: Path) -> None:
    found = image_folder(source)
    assert found.classes == ("B", "a b", "b", "empty", "linked")
    assert found.empty_classes == ("B", "empty")
    # top.jpg, b/notes.txt, empty/readme.md, B/1.webp; what is in .git is nobody's
    assert found.other_files == 4
    assert found.size_bytes == sum(one.size_bytes for one in found.files)


def test_the_fingerprint_changes_with_name_size_time_and_class(source: Path) -> None:
    first = image_folder(source).sha256
    assert image_folder(source).sha256 == first
    seen = {first}
    os.utime(source / "b/2.jpg", ns=(1, 1))
    seen.add(image_folder(source).sha256)
    (source / "b/10.png").write_bytes(b"more")
    seen.add(image_folder(source).sha256)
    (source / "b/2.jpg").rename(source / "b/3.jpg")
    seen.add(image_folder(source).sha256)
    (source / "new").mkdir()
    seen.add(image_folder(source).sha256)
    assert len(seen) == 5


def test_a_link_that_leads_nowhere_is_an_image_of_no_bytes(source: Path) -> None:
    (source / "b" / "0.png").symlink_to(source / "gone.png")
    found = image_folder(source)
    assert [one.size_bytes for one in found.files if one.path == "b/0.png"] == [0]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((), r"has no images \(.bmp, .gif, .jpeg, .jpg, .png\): it has no folders; give"),
        (("a/x.txt",), "none of its folders has one"),
        (("1.jpg", "2.png"), "are in no class; put them into one folder per class"),
        (("table.csv",), r"did you mean .*table\.csv\?"),
    ],
)
def test_a_folder_without_images_in_classes_is_refused(
    tmp_path: Path, files: tuple[str, ...], said: str
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    with pytest.raises(UsageError, match=said):
        image_folder(make(folder, *files))


def test_a_class_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).mkdir()
    make(tmp_path, "a/1.png")
    with pytest.raises(UsageError, match=r"class caf\\xe9 is no UTF-8 text; rename it"):
        image_folder(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_folder_that_cannot_be_read_is_named(source: Path) -> None:
    (source / "b").chmod(0)
    try:
        with pytest.raises(UsageError, match=r"cannot read .*/b: Permission denied"):
            image_folder(source)
    finally:
        (source / "b").chmod(0o700)
