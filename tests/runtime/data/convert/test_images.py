"""runtime/convert_images: Keras reads what is stored; damaged images are named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.runtime.forks import forked
from tests.runtime.pictures import make_pictures

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value

pytestmark = pytest.mark.tf
STORED = """
import json, sys
from pathlib import Path
import keras, numpy as np, tensorflow as tf
from tfdyno.runtime.data.convert.images import stored

data = keras.utils.image_dataset_from_directory(
    sys.argv[1], image_size=(9, 14), batch_size=1, shuffle=False, verbose=False)
worst, exact = 0.0, True
for (images, _), path in zip(data, data.file_paths):
    content = Path(path).read_bytes()
    exact &= stored(content, None) == content
    pixels = np.frombuffer(stored(content, (9, 14)), np.uint8).reshape(9, 14, 3)
    worst = max(worst, float(np.abs(images.numpy()[0] - pixels).max()))
print(json.dumps([len(data.file_paths), exact, worst]))
"""
READ = """
import json, sys
from pathlib import Path
import tensorflow as tf
from tfdyno.core.base.errors import UsageError
from tfdyno.core.messages.data import ShardPlan
from tfdyno.runtime.data.convert.images import Images

bad = []
images = Images(Path(sys.argv[1]), image_size=None)
try:
    found = list(images.records(ShardPlan(file="a", images=json.loads(sys.argv[2])),
                                lambda *told: bad.append(told)))
except UsageError as error:
    print(json.dumps(str(error)))
else:
    paths = [tf.train.Example.FromString(one).features.feature["path"].bytes_list.value[0].decode()
             for one in found]
    print(json.dumps([paths, bad]))
"""


def read(folder: Path, items: list[list[object]]) -> Value:
    return json.loads(forked(READ, str(folder), json.dumps(items)))


def test_stored_pixels_are_those_of_keras_rounded(tmp_path: Path) -> None:
    folder = make_pictures(tmp_path / "pictures", 12)
    count, exact, worst = json.loads(forked(STORED, str(folder)))
    assert count == 12
    assert exact  # without a size the file is stored as it is
    assert 0.0 < worst <= 0.5


def test_images_come_in_order_and_damaged_ones_are_named(tmp_path: Path) -> None:
    folder = make_pictures(tmp_path, 300, 8)
    paths = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
    whole = (folder / paths[10]).read_bytes()
    (folder / paths[10]).write_bytes(whole[:-20])
    (folder / paths[20]).write_bytes(b"")
    (folder / paths[30]).write_text("an image of a cat")
    (folder / paths[40]).unlink()
    items: list[list[object]] = [
        [path, 0, (folder / path).stat().st_size if (folder / path).exists() else 0]
        for path in paths
    ]
    found, bad = read(folder, items)
    gone = [paths[place] for place in (10, 20, 30, 40)]
    assert found == [path for path in paths if path not in gone]
    assert [path for path, _ in bad] == gone
    reasons = [why for _, why in bad]
    assert "Invalid" in reasons[0]
    assert reasons[1] == "Input is empty"
    assert reasons[2].startswith("Unknown image file format")
    assert reasons[3] == "No such file or directory"
    assert not any("{{" in why or "[Op:" in why for why in reasons)


def test_an_image_that_changed_since_it_was_listed_ends_it(tmp_path: Path) -> None:
    folder = make_pictures(tmp_path, 3, 8)
    path = next(folder.rglob("*.png"))
    said = read(folder, [[str(path.relative_to(folder)), 0, 3]])
    assert "has changed while it was converted" in said
    assert f"{path.stat().st_size} bytes instead of 3" in said
