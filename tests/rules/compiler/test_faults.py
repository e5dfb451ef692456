from __future__ import annotations

from pathlib import Path

import pytest

from tfdyno.rules.compiler.faults import all_faults, fault_in, short

LOG = Path(__file__).parents[2] / "data" / "xla" / "symbolic_tile.log"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (LOG.read_text(), "symbolic_tile"),
        ("F0000 gemm_fusion_autotuner.cc:1041] Non-OK-status: has_executable.status()\n"
         "Status: FAILED_PRECONDITION: Can not propagate dim orders and requirements.",
         "dim_orders"),
        ("InternalError: Autotuner could not find any supported configs for HLO: "
         "%cudnn-conv-bias-activation.6 = (f32[128,16,12,12]{3,2,1,0}, u8[0]{0}) custom-call(%a)",
         "cudnn_autotuner"),
        ("JaxRuntimeError: INTERNAL: Autotuning failed for HLO: %cublas-gemm.1 = f32[8,8] "
         'custom-call(%a, %b), backend_config={"device_type":"DEVICE_TYPE_INVALID"}',
         "gemm_autotuner"),
        ("InternalError: RET_CHECK failure (external/xla/xla/service/gpu/ir_emitter.cc:1388) "
         "triton_module Failed to parse Triton module", "unknown"),
        ("LLVM ERROR: PTX version 8.5 does not support target 'sm_120'.", "ptx_too_old"),
        ("LLVM ERROR: ptx87 is required for target sm_120", "ptx_too_old"),
        ("LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.wgmma", "unknown"),
        ("InternalError: ptxas exited with non-zero error code 65280, output: ", "unknown"),
    ],
)  # fmt: skip
def test_what_the_compiler_says_names_the_fault(text: str, name: str) -> None:
    found = fault_in(text)
    assert found
    assert found.id == name


@pytest.mark.parametrize(
    "text",
    [
        "InvalidArgumentError: Detected unsupported operations when trying to compile graph step",
        "Function invoked by the following node is not compilable: {{node PartitionedCall}}",
        "Input 1 to node `Tile` with op Tile must be a compile-time constant.",
        "ResourceExhaustedError: Out of memory while trying to allocate 1 GiB: Autotuning failed "
        "for HLO: RESOURCE_EXHAUSTED",
        "InternalError: libdevice not found at ./libdevice.10.bc: LLVM ERROR",
        "InternalError: Failed copying input tensor from CPU to GPU",
        "InternalError: NCCL Error 2: unhandled system error",
        "ValueError: shapes (8,) and (9,) do not match",
        "F0000 parse_flags_from_env.cc:234] Unknown flag in XLA_FLAGS: --xla_gpu_nonsense=1",
        '{"backend_config":{"device_type":"DEVICE_TYPE_INVALID"}}',
        "",
    ],
)
def test_the_users_code_memory_and_the_installation_are_no_faults_of_the_compiler(
    text: str,
) -> None:
    assert fault_in(text) is None


def test_a_crash_counts_only_where_xla_compiled_and_nothing_else_is_named() -> None:
    assert fault_in("free(): invalid pointer") is None
    found = fault_in("free(): invalid pointer", crashed_in_xla=True)
    assert found
    assert not found.is_known
    assert fault_in("OOM when allocating tensor", crashed_in_xla=True) is None


def test_the_compilers_words_are_told_without_its_program() -> None:
    tile = "Failed to analyze the computation (Failed to compute symbolic tile)"
    assert short(LOG.read_text()) == tile
    said = "JaxRuntimeError: INTERNAL: Autotuning failed for HLO: %cublas-gemm.1 = f32[8,8] custom"
    assert short(said) == "Autotuning failed"
    assert short("free(): invalid pointer") == ""
    assert len(short("InternalError: RET_CHECK failure (xla/a.cc:1) " + "x" * 500)) == 160


def test_every_known_fault_has_a_thread_and_says_how_it_is_seen_and_met() -> None:
    for one in all_faults():
        assert one.title
        assert one.remedy
        assert one.source
        assert one.references, one.id
        assert one.match or one.silent or one.slow, one.id
        assert not one.silent or one.check, one.id
