"""Amounts as they are printed, and a report that grows line by line."""

from __future__ import annotations

import pytest

from tfdyno.core.doctor.oom import ChunkSize, LiveBuffer
from tfdyno.rules.oom.draft import MOST_BUFFERS, Draft, kind_of, printed_bytes, tensor_bytes


@pytest.mark.parametrize(
    ("text", "amount", "exact"),
    [
        ("1843986432", 1843986432, True),
        ("512B", 512, True),
        ("1.50KiB", 1536, False),
        ("2.00GiB", 2**31, False),
        ("17.6G", round(17.6 * 2**30), False),
        ("?", 0, False),
    ],
)
def test_amounts_are_read_in_binary_units(text: str, amount: int, exact: bool) -> None:
    assert printed_bytes(text) == (amount, exact)


def test_a_tensor_has_the_bytes_of_its_type() -> None:
    assert tensor_bytes((128, 768), "float") == 128 * 768 * 4
    assert tensor_bytes((128, 768), "half") == 128 * 768 * 2
    assert tensor_bytes((), "double") == 8
    assert tensor_bytes((3,), "string") == 0


@pytest.mark.parametrize(
    ("allocator", "device", "kind"),
    [
        ("GPU_0_bfc", "", "gpu"),
        ("bfc_cpu_allocator_for_gpu", "", "host"),
        ("gpu_host_bfc", "", "host"),
        ("bfc", "/job:localhost/replica:0/task:0/device:GPU:0", "gpu"),
        ("bfc", "", ""),
    ],
)
def test_an_allocator_tells_whose_memory_it_gives(allocator: str, device: str, kind: str) -> None:
    assert kind_of(allocator, device) == kind


def test_the_first_amount_stays_but_an_exact_one_replaces_a_rounded_one() -> None:
    draft = Draft()
    for text in ("1.50KiB", "1540", "9999"):
        draft.tell("limit_bytes", text)
    assert draft.numbers == {"limit_bytes": 1540}
    assert not draft.approximate


def test_a_tensor_tells_what_was_asked_for() -> None:
    draft = Draft()
    draft.tensor("128,768", "float")
    draft.tensor("1,1", "float")
    assert draft.numbers["requested_bytes"] == 128 * 768 * 4
    assert draft.shape == (128, 768)


def test_chunks_make_the_memory_in_use_and_the_free_one() -> None:
    draft = Draft()
    for size, in_use in ((256, True), (1024, True), (256, True), (512, False), (128, False)):
        draft.chunk(size, in_use=in_use)
    report = draft.report()
    assert report.in_use_bytes == 256 + 1024 + 256
    assert (report.free_bytes, report.largest_free_bytes) == (640, 512)
    assert report.chunks == (
        ChunkSize(size_bytes=1024, count=1),
        ChunkSize(size_bytes=256, count=2),
    )


def test_the_largest_buffers_are_kept_in_order() -> None:
    draft = Draft()
    for size in range(1, MOST_BUFFERS + 6):
        draft.buffer(LiveBuffer(size_bytes=size, name=str(size)))
    sizes = [one.size_bytes for one in draft.report().buffers]
    assert sizes == list(range(MOST_BUFFERS + 5, 5, -1))


def test_a_buffer_of_xla_has_the_exact_size_of_its_shape_unless_it_is_padded() -> None:
    draft = Draft(opened={"size": "6.0MiB", "shape": "f32[4096,128,3]", "label": "fusion"})
    draft.close_buffer()
    draft.opened = {"size": "512.00M", "shape": "f32[10,3]"}
    draft.close_buffer()
    assert [(one.size_bytes, one.shape) for one in draft.report().buffers] == [
        (512 * 2**20, "f32[10,3]"),
        (4096 * 128 * 3 * 4, "f32[4096,128,3]"),
    ]
