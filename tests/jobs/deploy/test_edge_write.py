"""The C array is compiled and compared with the model before the folder is there."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.jobs.deploy.edge_write import check_array
from tfdyno.render.deploy.edge_c import model_header, model_source

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler is installed")
def test_the_array_compiles_to_the_models_bytes(tmp_path: Path) -> None:
    data = bytes(range(256)) * 3
    (tmp_path / "model_data.h").write_text(model_header())
    (tmp_path / "model_data.cc").write_text(model_source(data))
    assert check_array(tmp_path, data) is True
    (tmp_path / "model_data.h").write_text(model_header() + "this is no C")
    with pytest.raises(ToolError, match="does not compile"):
        check_array(tmp_path, data)


def test_an_array_with_other_bytes_is_found(tmp_path: Path) -> None:
    (tmp_path / "model_data.h").write_text(model_header())
    (tmp_path / "model_data.cc").write_text(model_source(b"abc"))
    with pytest.raises(ToolError, match="does not hold the model's bytes"):
        check_array(tmp_path, b"abd")
