"""A ``.keras`` file is looked at before anything of it is loaded."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.workload.kerasfile import load_config

if TYPE_CHECKING:
    from pathlib import Path

LAMBDA = {"class_name": "__lambda__", "config": {"value": ["code"]}}


def saved(folder: Path, config: object, *, name: str = "config.json") -> Path:
    path = folder / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, config if isinstance(config, str) else json.dumps(config))
    return path


@pytest.mark.parametrize(
    "config",
    [LAMBDA, {"config": {"layers": [{"config": {"function": LAMBDA}}]}}],
)
def test_code_in_a_file_is_not_loaded_unless_it_is_trusted(config: object, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        load_config(saved(tmp_path, config), allow_unsafe=False)
    assert str(told.value) == (
        f"{tmp_path / 'model.keras'} holds a lambda: loading it runs code from the file; "
        "allow it with --unsafe only if you trust where the file comes from."
    )


@pytest.mark.parametrize(
    ("config", "name"), [("{", "config.json"), ("{}", "metadata.json"), ("\ud7ff{", "config.json")]
)
def test_an_archive_without_a_configuration_is_no_model(
    config: str, name: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is not a Keras 3 model file; save the model again"):
        load_config(saved(tmp_path, config, name=name), allow_unsafe=False)


def test_a_file_of_another_kind_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(UsageError, match="is not a Keras 3 model file"):
        load_config(path, allow_unsafe=True)
