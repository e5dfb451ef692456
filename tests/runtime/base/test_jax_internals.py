"""Every private name of JAX that tfdyno uses is there and is what it is used for."""

from __future__ import annotations

import pytest
from tests.runtime import private_names

from tfdyno.runtime.base.jax_internals import cudnn_checks

pytestmark = pytest.mark.tf
CUDNN = "jax._src.cudnn.fused_attention_stablehlo"
NAMES = {
    f"{CUDNN}.check_cudnn_version": "",
    f"{CUDNN}.check_compute_capability": "capability",
    f"{CUDNN}.is_cuda_compute_capability_equal": "capability",
}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name: str) -> None:
    assert private_names.found(name)
    assert private_names.untaken(name, NAMES[name]) == []


def test_jax_is_told_of_a_card_and_of_none_afterwards() -> None:
    checks = private_names.found(CUDNN)
    before = vars(checks).copy()
    with cudnn_checks(8.6):
        assert checks.check_compute_capability("8.0")
        assert not checks.check_compute_capability("9.0")
        assert checks.is_cuda_compute_capability_equal("8.6")
        assert checks.check_cudnn_version() >= 9000
    assert {name: before[name] for name in before} == dict(vars(checks))
