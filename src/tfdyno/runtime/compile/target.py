"""The description of a GPU that XLA's compiler takes in place of the card itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.core.messages.compile import Target

CUDNN = (9, 10, 0)  # of TensorFlow 2.21's build; decides which fused convolutions XLA may ask for
SHARED_MEMORY_BYTES = 49152  # per block without opting in, on every NVIDIA GPU since Fermi
THREADS_PER_BLOCK = 1024
BLOCKS = (2147483647, 65535, 65535)


def target_text(target: Target) -> str:
    """Write ``stream_executor.GpuTargetConfigProto`` as text (device_description.proto of XLA)."""
    major, minor = target.compute_capability.split(".")
    return f"""gpu_device_info {{
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  core_count: {target.sm_count}
  fpus_per_core: {target.cuda_cores}
  clock_rate_ghz: {target.clock_hz / 1e9:.6g}
  device_memory_size: {target.memory_bytes}
  memory_bandwidth: {target.memory_bytes_per_s:.0f}
  l2_cache_size: {target.l2_bytes:.0f}
  shared_memory_per_core: {target.shared_memory_bytes}
  shared_memory_per_block: {SHARED_MEMORY_BYTES}
  shared_memory_per_block_optin: {target.shared_memory_per_block_bytes}
  threads_per_core_limit: {target.max_threads}
  threads_per_block_limit: {THREADS_PER_BLOCK}
  threads_per_warp: 32
  thread_dim_limit_x: {THREADS_PER_BLOCK}
  thread_dim_limit_y: {THREADS_PER_BLOCK}
  thread_dim_limit_z: 64
  block_dim_limit_x: {BLOCKS[0]}
  block_dim_limit_y: {BLOCKS[1]}
  block_dim_limit_z: {BLOCKS[2]}
  registers_per_core_limit: {target.registers}
  registers_per_block_limit: {target.registers}
}}
platform_name: "CUDA"
dnn_version_info {{ major: {CUDNN[0]} minor: {CUDNN[1]} patch: {CUDNN[2]} }}
device_description_str: "compute capability {target.compute_capability}"
"""
