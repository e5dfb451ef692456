"""runtime/export/torch: without PyTorch it says so; tests/jobs/deploy/test_export.py runs it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.messages.export import CompareOnTorch, ForTorch
from tfdyno.runtime.export.torch import handle


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")
def test_without_pytorch_the_way_by_onnx_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    known = ForTorch(judged="", amounts=(), batch=0, data="")
    nowhere = Path("nowhere")
    request = CompareOnTorch(folder=nowhere, kept=nowhere, inputs=(), outputs=(), known=known)
    with pytest.raises(UsageError) as told:
        handle(request, print)
    assert str(told.value) == (
        "export to torch needs PyTorch: this interpreter has none; name one that has it and Keras "
        "with --python, or export to onnx."
    )
