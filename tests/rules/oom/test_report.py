# ruff: noqa: E501
"""Reports of exhausted memory, as TensorFlow 1.1 to 2.21 and XLA print them.

Each file of ``tests/data/oom`` names in its first line where it is from.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdyno.core.doctor.oom import ChunkSize, OomReport
from tfdyno.rules.log.text import blocks
from tfdyno.rules.oom.draft import MOST_BUFFERS, MOST_SIZES
from tfdyno.rules.oom.report import OomReader
from tfdyno.rules.oom.words import what_held

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA = Path(__file__).parents[2] / "data" / "oom"


def read_oom(chunks: Iterable[bytes | str]) -> OomReport | None:
    """The report of a log given in pieces, read as ``log.scan`` hands its blocks over."""
    reader = OomReader()
    for block in blocks(chunks):
        reader.feed_block(block)
    return reader.report()


def report_of(name: str) -> OomReport:
    """The report of a stored log."""
    found = read_oom([(DATA / name).read_bytes()])
    assert found is not None
    return found


def test_a_2_21_report_gives_exact_bytes_though_it_prints_rounded_ones() -> None:
    report = report_of("tf221_host.log")
    assert (report.kind, report.allocator, report.operation) == (
        "host",
        "bfc_cpu_allocator_for_gpu",
        "Mul",
    )
    assert (report.shape, report.dtype) == ((2048, 2048), "float")
    assert report.requested_bytes == 2048 * 2048 * 4
    # 1 x 256 + 10 x 4 MiB + 2 x 16 MiB + 2 x 20 MiB; the log rounds it to 112.00MiB
    assert report.in_use_bytes == 256 + 112 * 2**20
    assert report.limit_bytes == 128 * 2**20
    assert report.pool_bytes == (64 + 32 + 16 + 8 + 4 + 2) * 2**20
    assert "in_use_bytes" not in report.approximate
    assert "limit_bytes" in report.approximate
    assert report.largest_free_bytes == 4194304
    assert report.free_bytes == 3 * 4194304 + 2096896


def test_a_2_x_report_of_a_gpu_names_tensor_and_operation() -> None:
    report = report_of("tf2_gpu.log")
    assert (report.kind, report.allocator) == ("gpu", "GPU_0_bfc")
    assert report.shape == (4, 2048, 128, 128)
    assert report.requested_bytes == 4 * 2048 * 128 * 128 * 4
    assert report.operation.startswith("layer1/conv2_2/bn")
    assert report.chunks[0] == ChunkSize(size_bytes=562273024, count=1)
    assert not report.approximate


@pytest.mark.parametrize(
    ("name", "in_use_bytes"),
    [("tf2_gpu.log", 917285632), ("tf213_gpu.log", 589212672), ("tf1_gpu.log", 21853696)],
)
def test_the_sum_of_the_chunks_is_what_the_statistics_say(name: str, in_use_bytes: int) -> None:
    report = report_of(name)
    assert sum(one.total_bytes for one in report.chunks) == in_use_bytes == report.in_use_bytes


def test_a_limit_that_the_card_could_not_give_means_someone_else() -> None:
    # limit 1,843,986,432 and 1,148,427,008 taken: 512 MiB more were allowed and refused
    report = report_of("tf2_gpu.log")
    assert report.is_refused_by_device
    assert not report.is_fragmented


def test_free_memory_in_pieces_is_fragmentation() -> None:
    line = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.14GiB (rounded to 1228800000)requested by op GatherV2\n"
    found = read_oom([line.encode() + (DATA / "tf213_gpu.log").read_bytes()])
    assert found is not None
    assert found.requested_bytes == 1228800000
    assert found.operation == "GatherV2"
    assert found.is_fragmented
    assert not found.is_refused_by_device
    assert any("largest free piece" in one for one in what_held(found))


def test_xla_names_its_largest_buffers_with_exact_sizes() -> None:
    report = report_of("xla_gpu.log")
    assert report.requested_bytes == 6291456
    assert report.program_bytes == 12 * 2**20
    assert report.buffers[0].size_bytes == 4096 * 128 * 3 * 4
    assert report.buffers[0].name == "jit(concatenate)/jit(main)/concatenate[dimension=0]"
    assert report.buffers[1].size_bytes == 256 * 128 * 3 * 4


def test_a_tpu_report_gives_need_and_room() -> None:
    report = report_of("xla_tpu.log")
    assert report.limit_bytes == 16 * 2**30
    assert report.program_bytes == round(17.6 * 2**30)
    # 512 MiB with padding although the tensor itself has 40.5 MiB
    assert [one.size_bytes for one in report.buffers] == [512 * 2**20, 256 * 2**20]
    assert report.buffers[0].name == "one_hot"


def test_tensors_that_the_hint_lists_are_kept() -> None:
    log = (
        "OOM when allocating tensor with shape[64,512,56,56] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n"
        "Current usage from device: /job:localhost/replica:0/task:0/device:GPU:0, "
        "allocator: GPU_0_bfc\n"
        "  1.53GiB from block1/conv/Conv2D\n"
        "  392.00MiB from block2/Relu\n"
        "  Remaining 12 nodes with 3.2MiB\n"
    )
    report = read_oom([log])
    assert report is not None
    assert [one.name for one in report.buffers] == ["block1/conv/Conv2D", "block2/Relu"]


def test_chunks_with_operations_are_kept_with_their_step() -> None:
    head = "I bfc_allocator.cc:1049] BFCAllocator dump for GPU_0_bfc\n"
    line = "I bfc_allocator.cc:1105] InUse at 7f5f of size 4194304 by op Adam/m action_count 12 step 3 next 4\n"
    report = read_oom([head + line])
    assert report is not None
    assert (report.buffers[0].name, report.buffers[0].step) == ("Adam/m", 3)


@pytest.mark.parametrize("order", ["Chunk at 0x1323f9bd00 of size 246016000",
                                   "InUse at 0x7f1c4f000200 next 3 of size 246016000",
                                   "InUse at 7f5f085fc040 of size 246016000 next 12"])  # fmt: skip
def test_the_map_of_every_version_is_read(order: str) -> None:
    report = read_oom([f"I bfc_allocator.cc:643] Bin (256): \tTotal Chunks: 0\n{order}\n"])
    assert report is not None
    assert report.in_use_bytes == 246016000


def test_a_skipped_algorithm_is_no_report() -> None:
    line = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.25GiB with freed_by_count=0. The caller indicates that this is not a failure"
    assert read_oom([line]) is None


def test_a_log_without_memory_has_no_report() -> None:
    assert read_oom(["Epoch 1/5\nloss: 0.4\nLimit: 10 requests\n"]) is None


def test_repeated_messages_count_once_and_others_again() -> None:
    one = (DATA / "xla_gpu.log").read_text()
    other = one.replace("6291456", "9291456")
    assert report_of("xla_gpu.log").count == 1
    found = read_oom([one, one, other])
    assert found is not None
    assert found.count == 2


def test_a_report_cut_into_pieces_is_the_same() -> None:
    whole = (DATA / "tf2_gpu.log").read_bytes()
    pieces = [whole[at : at + 97] for at in range(0, len(whole), 97)]
    assert read_oom(pieces) == report_of("tf2_gpu.log")


def test_a_report_without_end_stays_in_bounded_memory() -> None:
    reader = OomReader()
    reader.feed("BFCAllocator dump for GPU_0_bfc")
    for size in range(1, MOST_SIZES + 500):
        reader.feed(f"InUse at 7f5f of size {size * 256} by op X action_count 1 step 1 next 4")
    report = reader.report()
    assert report is not None
    assert len(report.chunks) == MOST_SIZES
    assert len(report.buffers) == MOST_BUFFERS
    assert report.buffers[0].size_bytes == (MOST_SIZES + 499) * 256


def test_what_held_the_memory_is_said_in_both_languages() -> None:
    said = what_held(report_of("tf1_gpu.log"), card_bytes=8 * 2**30)
    assert said[0].startswith("The limit is 153 MiB of the 8 GiB of the card")
    chinese = what_held(report_of("tf1_gpu.log"), card_bytes=8 * 2**30, language="zh")
    assert len(chinese) == len(said)
    assert "153 MiB" in chinese[0]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from((DATA / "tf2_gpu.log").read_text().splitlines()
                                + (DATA / "xla_gpu.log").read_text().splitlines()
                                + (DATA / "xla_tpu.log").read_text().splitlines()), max_size=40),
       st.integers(0, 30))  # fmt: skip
def test_no_order_of_lines_breaks_the_reader(lines: list[str], cut: int) -> None:
    read_oom(["\n".join(line[cut:] for line in lines)])
    report = read_oom(["\n".join(lines)])
    if report is not None:
        what_held(report, card_bytes=2**33)
