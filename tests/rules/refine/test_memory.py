# ruff: noqa: E501
"""Memory, crashes, NCCL, XLA and NaN: wordings of many versions lead to their cause."""

from __future__ import annotations

import dataclasses

import pytest

from tfdyno.core.doctor.machine_facts import GpuFacts, MachineFacts, Process
from tfdyno.core.doctor.oom import OomReport
from tfdyno.rules.causes import all_causes
from tfdyno.rules.explain import diagnose
from tfdyno.rules.log.explained import scan
from tfdyno.rules.log.matches import log_matches
from tfdyno.rules.refine.memory import refine_with_report

CARD = GpuFacts(name="NVIDIA GeForce RTX 3080", memory_bytes=10 * 2**30)
STATS = "I bfc_allocator.cc:1010] Stats: \nLimit:  {}\nInUse:  1000\nMaxInUse:  2000\n"
OOM = "OOM when allocating tensor with shape[64,512] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n"
CUDNN = "E cuda_dnn.cc:329] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n"
WRONG = "E cuda_dnn.cc:361] Loaded runtime CuDNN library: 8.0.4 but source was compiled with: 8.1.0.  CuDNN library needs to have matching major version and equal or higher minor version.\n"


def causes(log: str, *cards: GpuFacts) -> list[str]:
    """Ids of the findings, the root first."""
    facts = MachineFacts(gpus=cards or None)
    return [one.cause for one in diagnose(log=scan([log], all_causes()), facts=facts).findings]


def test_a_limit_near_the_card_is_the_model() -> None:
    assert causes(STATS.format(9 * 2**30) + OOM, CARD)[0] == "mem.oom_model"


def test_a_limit_far_below_the_card_is_another_process() -> None:
    assert "mem.held_by_other_process" in causes(STATS.format(3 * 2**30) + OOM, CARD)


def test_a_small_card_with_a_small_limit_is_the_model() -> None:
    small = GpuFacts(memory_bytes=2**30)
    assert causes(STATS.format(900 * 2**20) + OOM, small) == ["mem.oom_model"]


def test_a_limit_of_megabytes_is_another_process_though_the_card_is_unknown() -> None:
    assert causes(STATS.format(57622528) + "Dst tensor is not initialized\n") == [
        "mem.held_by_other_process"
    ]


def test_processes_of_the_driver_are_proof() -> None:
    busy = GpuFacts(memory_bytes=2**33, processes=(Process(pid=41, name="jupyter", memory_bytes=7 * 2**30),))  # fmt: skip
    log = scan(["failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY"], all_causes())
    found = diagnose(log=log, facts=MachineFacts(gpus=(busy,))).findings[0]
    assert (found.cause, found.verdict) == ("mem.held_by_other_process", "proven")
    assert "jupyter (41, 7 GiB)" in found.summary


def test_a_version_line_of_cudnn_wins_over_its_failure() -> None:
    assert causes(WRONG + CUDNN) == ["lib.cudnn_version_mismatch"]
    assert causes(CUDNN) == ["mem.cudnn_init"]


def test_the_exact_report_gives_its_numbers_and_fragmentation() -> None:
    report = OomReport(kind="gpu", requested_bytes=2**30, limit_bytes=2**33, in_use_bytes=2**31,
                       pool_bytes=2**33, shape=(64, 512))  # fmt: skip
    matches = log_matches(scan([OOM], all_causes()), {})
    found, apart = refine_with_report(matches, report, MachineFacts())
    assert found.values["wanted"] == "1 GiB"
    # 8 GiB were taken and 2 GiB of them in use: 6 GiB are free, in pieces that nobody listed
    assert (apart.cause, apart.verdict) == ("mem.fragmented", found.verdict)
    assert apart.values == {"free": "6 GiB", "memory": "gpu"}


def test_a_listed_largest_piece_is_told_and_a_large_one_is_no_fragmentation() -> None:
    report = OomReport(kind="gpu", requested_bytes=2**30, limit_bytes=2**33, in_use_bytes=2**31,
                       pool_bytes=2**33, largest_free_bytes=2**28)  # fmt: skip
    matches = log_matches(scan([OOM], all_causes()), {})
    apart = refine_with_report(matches, report, MachineFacts())[1]
    assert apart.values["piece"] == "256 MiB"
    assert apart.evidence[0].text == (
        "1 GiB were asked for and 6 GiB were free, the largest piece 256 MiB"
    )
    full = dataclasses.replace(report, in_use_bytes=2**33)
    assert len(refine_with_report(matches, full, MachineFacts())) == 1


def test_without_a_report_nothing_changes() -> None:
    matches = log_matches(scan([OOM], all_causes()), {})
    assert refine_with_report(matches, None, MachineFacts()) == matches


WORDINGS = [
    # memory of the GPU
    ("mem.oom_model", "Resource exhausted: OOM when allocating tensor with shape[25088,4096]"),
    ("mem.oom_model", "W tensorflow/core/common_runtime/bfc_allocator.cc:275] Ran out of memory trying to allocate 144.00MiB.  See logs for memory state."),
    ("mem.oom_model", "W tensorflow/core/common_runtime/bfc_allocator.cc:431] Allocator (GPU_1_bfc) ran out of memory trying to allocate 2.25GiB (rounded to 2415919104)requested by op model/conv2d/Conv2D"),
    ("mem.oom_model", "E external/xla/xla/pjrt/pjrt_stream_executor_client.cc:2985] Execution of replica 0 failed: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12884901888 bytes."),
    ("mem.oom_model", "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.50GiB."),
    ("mem.oom_model", "tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node __wrapped__AddV2}} failed to allocate memory [Op:AddV2]"),
    ("mem.oom_model", "InternalError: Failed copying input tensor from CPU:0 to GPU:0 in order to run GatherV2: Dst tensor is not initialized. [Op:GatherV2]"),
    ("mem.oom_model", "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB total capacity)"),
    # another process
    ("mem.held_by_other_process", "E cuda_driver.cc:806] failed to allocate 3.90G (4190109696 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
    ("mem.held_by_other_process", "tensorflow.python.framework.errors_impl.InternalError: CUDA runtime implicit initialization on GPU:0 failed. Status: out of memory"),
    ("mem.held_by_other_process", "failed call to cuInit: CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
    ("mem.held_by_other_process", "InternalError: cudaSetDevice() on GPU:0 failed. Status: out of memory"),
    ("mem.held_by_other_process", "totalMemory: 10.92GiB freeMemory: 174.75MiB"),
    # memory of the host
    ("mem.host_oom", "OOM when allocating tensor with shape[60000,224,224,3] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator mklcpu"),
    ("mem.host_oom", "OOM when allocating tensor with shape[512,2048] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator gpu_host_bfc"),
    ("mem.host_oom", "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 11.2 GiB for an array with shape (20000, 224, 224, 3) and data type float32"),
    ("mem.host_oom", "./train.sh: line 3:  2711 Killed                  python train.py"),
    ("mem.host_oom", "command terminated with exit code 137"),
    ("mem.host_oom", "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted (core dumped)"),
    ("mem.host_oom", "The process keeps ending with \"Killed\"."),
    ("mem.host_oom", "OOM when allocating tensor with shape[1000000,300] and type float on /device:CPU:0"),
    # libraries that cannot start
    ("mem.cudnn_init", "tensorflow.python.framework.errors_impl.InternalError: Blas GEMM launch failed : a.shape=(32, 784), b.shape=(784, 512)"),
    ("mem.cudnn_init", "Attempting to perform BLAS operation using StreamExecutor without BLAS support"),
    ("mem.cudnn_init", "E tensorflow/stream_executor/cuda/cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED"),
    ("mem.cudnn_init", "UnknownError:  [_Derived_]  Fail to find the dnn implementation.\nCUDNN_STATUS_EXECUTION_FAILED"),
    ("mem.cudnn_init", "No algorithm worked!  Error messages:\n  Profiling failure on CUDNN engine 1: UNKNOWN: CUDNN_STATUS_ALLOC_FAILED"),
    ("mem.growth_after_init", "ValueError: Visible devices cannot be modified after being initialized"),
    ("mem.growth_differs", "ValueError: Memory growth cannot differ between GPU devices"),
    # XLA
    ("xla.unsupported_op", "InvalidArgumentError: Detected unsupported operations when trying to compile graph cluster_0[] on XLA_CPU_JIT: StringFormat (No registered 'StringFormat' OpKernel for XLA_CPU_JIT devices compatible with node {{node f}})"),
    ("xla.unsupported_op", "tf2xla conversion failed: No registered 'EagerPyFunc' OpKernel for XLA_GPU_JIT devices compatible with node"),
    ("xla.dynamic_shape", "XLA can't deduce compile time constant output shape for strided slice: [?,?], output shape must be a compile-time constant"),
    ("xla.dynamic_shape", "Argument to function must be a compile-time constant, but unable to resolve argument value to a constant."),
    ("xla.dynamic_shape", "Input 1 to `Range` operator must be a compile-time constant."),
    # several GPUs
    ("nccl.shm", "include/shm.h:41 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-1YsMbG (size 7340384)\nncclSystemError: System call failed"),
    ("nccl.network", "misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.0.0.2<45763> failed : Software caused connection abort"),
    ("nccl.network", "h:1:2 [0] include/socket.h:403 NCCL WARN Connect to fe80::1%veth0<4031> failed : Network is unreachable\nncclSystemError"),
    ("nccl.network", "gpu:18553:18611 [0] include/socket.h:360 WARN Call to connect failed : Connection timed out"),
    ("nccl.infiniband", "misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out"),
    ("nccl.infiniband", "misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory\nunhandled system error"),
    ("nccl.infiniband", "transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.2.0.4<51330> with error 12, opcode 32680, len 0, vendor err 129"),
    ("nccl.system_error", "InternalError: NCCL: unhandled cuda error. Set NCCL_DEBUG=WARN for detail."),
    ("nccl.system_error", "ncclUnhandledCudaError: Call to CUDA function failed."),
    ("nccl.network", "E ring_alg.cc:274] Aborting RingReduce with UNAVAILABLE: Connection reset by peer"),
    # numbers
    ("num.mixed_nan", "INFO:tensorflow:Mixed precision compatibility check (mixed_float16): OK\n100/100 - 3s - loss: nan - accuracy: 0.1"),
    ("num.mixed_nan", "K.set_floatx('float16')\nEpoch 2/10  total loss: nan"),
    ("num.mixed_nan", "After switching to mixed_float16 all gradients are NaN"),
    # crashes
    ("rt.gpu_crash", "CUDA_ERROR_MISALIGNED_ADDRESS: misaligned address"),
    ("rt.gpu_crash", "F tensorflow/core/common_runtime/device/device_event_mgr.cc:223] Unexpected Event status: 1"),
    ("rt.gpu_crash", "E cuda_driver.cc:1078] failed to synchronize the stop event: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"),
    ("rt.gpu_crash", "kernel: NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
    ("rt.gpu_crash", "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered\nCUDNN_STATUS_INTERNAL_ERROR\nFailed to get convolution algorithm."),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "log"), WORDINGS)
def test_a_wording_leads_to_its_cause(cause: str, log: str) -> None:
    assert causes(log)[:1] == [cause]


HARMLESS = [
    "W bfc_allocator.cc:290] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.17GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be performance gains if more memory were available.",
    "worker:1:2 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
    "worker:1:2 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
    "worker:1:2 [0] NCCL INFO NET/IB : No device found.",
    "W op_kernel.cc:1192] Out of range: End of sequence\n\t [[{{node IteratorGetNext}}]]",
    "I local_rendezvous.cc:405] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence",
    "E cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
    "I cpu_feature_guard.cc:137] Your CPU supports instructions that this TensorFlow binary was not compiled to use: AVX2 FMA",
    "tcmalloc: large alloc 4294967296 bytes == 0x55d3a6a4e000 @  0x7f6c8",
    "E meta_optimizer.cc:961] layout failed: INVALID_ARGUMENT: Size of values 0 does not match size of permutation 4 @ fanin shape in model/dropout",
    "Epoch 1/5\n 100/100 - 3s 12ms/step - loss: 0.3214 - accuracy: 0.91 - val_loss: 0.4",
    "Limit: 10\nInUse: 3",
    "I gpu_device.cc:1929] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 22312 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 3090, pci bus id: 0000:3b:00.0, compute capability: 8.6",
]  # fmt: skip


@pytest.mark.parametrize("log", HARMLESS)
def test_a_harmless_line_is_no_finding(log: str) -> None:
    assert causes(log) == []


def test_the_number_of_an_xid_is_not_the_address_of_the_card() -> None:
    log = scan(["NVRM: Xid (PCI:0000:0a:00): 62, pid=1234"], all_causes())
    assert "Xid 62" in diagnose(log=log, facts=MachineFacts()).findings[0].summary
