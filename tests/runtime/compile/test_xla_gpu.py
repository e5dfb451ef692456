import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.runtime.compile import xla_gpu


def test_a_missing_compiler_is_said_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(xla_gpu, "PACKAGES", ("jaxlib", "no-such-compiler-package"))
    with pytest.raises(ToolError, match=r'no-such-compiler.*pip install "tfdyno\[exact\]"'):
        xla_gpu.prepare()


def test_versions_name_the_compiler_and_the_assembler() -> None:
    assert set(xla_gpu.versions()) == {
        "jax", "jaxlib", "jax-cuda12-pjrt", "nvidia-cuda-nvcc-cu12"
    }  # fmt: skip
    assert all(xla_gpu.versions().values())
