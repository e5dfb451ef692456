from tfdyno.core.messages.compile import Target
from tfdyno.runtime.compile.target import target_text

A100 = Target(
    compute_capability="8.0",
    sm_count=108,
    cuda_cores=64,
    max_threads=2048,
    registers=65536,
    shared_memory_bytes=167936,
    shared_memory_per_block_bytes=166912,
    memory_bytes=42_000_000_000,
    memory_bytes_per_s=1.555e12,
    l2_bytes=41943040.0,
    clock_hz=1.41e9,
)


def test_the_description_names_every_fact_in_the_units_of_the_compiler() -> None:
    text = target_text(A100)
    for line in (
        "cuda_compute_capability { major: 8 minor: 0 }",
        "core_count: 108",
        "clock_rate_ghz: 1.41",
        "device_memory_size: 42000000000",
        "memory_bandwidth: 1555000000000",
        "shared_memory_per_block_optin: 166912",
    ):
        assert line in text
