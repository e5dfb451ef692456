"""Allocations and releases paired as they happened, scratch room told apart."""

from __future__ import annotations

from graph_memory.events import Event, Span, is_scratch, tensors


def event(at: int, address: int, size: int = 0, operation: str = "", region: str = "") -> Event:
    return Event(
        at_ps=at,
        freed=size == 0,
        address=address,
        requested_bytes=size,
        chunk_bytes=size,
        operation=operation,
        region=region,
        shape="",
    )


def test_a_release_ends_the_allocation_at_its_address() -> None:
    found = tensors([event(1, 100, 8), event(2, 200, 8), event(3, 100), event(4, 100, 16)])
    assert [(t.allocated.at_ps, t.released_ps) for t in found] == [(1, 3), (2, None), (4, None)]


def test_an_address_taken_again_was_released() -> None:
    found = tensors([event(1, 100, 8), event(5, 100, 8)])
    assert [t.released_ps for t in found] == [5, None]


def test_room_given_back_within_its_kernel_is_scratch() -> None:
    kernel = Span(start_ps=0, end_ps=10, name="conv", kind="Conv2D")
    made = [
        event(1, 100, 8, "conv", "temp"),  # given back inside
        event(2, 200, 8, "conv", "temp"),  # kept: a reduction's result is allocated so
        event(3, 300, 8, "conv", "output"),
        event(4, 100),
        event(20, 200),
        event(9, 300),
    ]
    found = tensors(sorted(made, key=lambda each: each.at_ps))
    assert is_scratch(found, [kernel]) == [True, False, False]


def test_scratch_of_an_xla_program_has_no_operation() -> None:
    program = Span(start_ps=0, end_ps=10, name="CpuExecutable:", kind="ExecuteAsyncOnStream")
    found = tensors([event(1, 100, 8), event(2, 200, 8), event(5, 100)])
    assert is_scratch(found, [program]) == [True, False]
