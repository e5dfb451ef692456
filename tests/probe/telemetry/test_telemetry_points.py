from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.measure.measurement import MISSING, CardTelemetry, Telemetry
from tfdyno.probe.cards.cards import Reading
from tfdyno.probe.telemetry.telemetry_points import CardPoint, Point, assemble, foreign_bytes

SOUND = Reading(utilisation_ratio=0.5, memory_bytes=100, power_w=300.0, throttle=("power brake",))
LENGTHS = (
    "utilisation_ratio", "memory_bytes", "other_memory_bytes", "power_w", "temperature_celsius",
    "graphics_clock_hz", "memory_clock_hz", "throttle",
)  # fmt: skip
maybe = st.none() | st.integers(0, 10**12)


def test_nothing_was_measured_where_there_is_no_point() -> None:
    assert assemble([], interval_s=0.5, cost_ratio=0.0) == Telemetry()


def test_a_card_lost_midway_leaves_missing_points_not_shorter_lists() -> None:
    cards = [
        CardPoint(index=1, reading=SOUND, other_memory_bytes=7),
        CardPoint(index=1),
        CardPoint(index=1, reading=SOUND, other_memory_bytes=0),
    ]
    points = [Point(at_s=0.5 * n, cards=(card,)) for n, card in enumerate(cards)]
    told = assemble(points, interval_s=0.5, cost_ratio=0.001)
    assert told.cards == (
        CardTelemetry(
            index=1,
            utilisation_ratio=(0.5, MISSING, 0.5),
            memory_bytes=(100, MISSING, 100),
            other_memory_bytes=(7, MISSING, 0),
            power_w=(300.0, MISSING, 300.0),
            throttle=(("power brake",), (), ("power brake",)),
        ),
    )
    assert told.at_s == (0.0, 0.5, 1.0)


def test_a_counter_of_bytes_never_falls() -> None:
    values = [10, None, 30, 20, 40]
    points = [Point(at_s=n, disk_read_bytes=value) for n, value in enumerate(values)]
    told = assemble(points, interval_s=1, cost_ratio=0)
    assert told.disk_read_bytes == (10, MISSING, 30, 30, 40)
    assert told.disk_write_bytes == ()


@given(st.lists(st.tuples(maybe, maybe, maybe, maybe), max_size=20))
def test_every_list_is_as_long_as_the_points_or_empty(rows: list[tuple[int | None, ...]]) -> None:
    points = [
        Point(
            at_s=float(n),
            memory_bytes=a,
            disk_write_bytes=b,
            cards=(CardPoint(index=0, reading=Reading(memory_bytes=c), other_memory_bytes=d),),
        )
        for n, (a, b, c, d) in enumerate(rows)
    ]
    told = assemble(points, interval_s=0.5, cost_ratio=0.0)
    lists = [told.memory_bytes, told.disk_write_bytes, told.disk_read_bytes, told.cpu_ratio]
    lists += [getattr(card, name) for card in told.cards for name in LENGTHS]
    assert {len(one) for one in lists} <= {0, len(rows)}


def test_memory_of_others_is_what_the_childs_tree_does_not_hold() -> None:
    assert foreign_bytes([(5, 100), (6, 30), (9, 1)], frozenset({5, 6}), frozenset(), bool) == 1


def test_a_number_of_the_host_is_not_taken_for_a_stranger_in_a_container() -> None:
    """The driver names the child 4711, which is no process here: it came after the child did."""
    nobody = lambda _pid: False  # noqa: E731
    own, before = frozenset({5}), frozenset({99})
    assert foreign_bytes([(99, 1000), (4711, 50)], own, before, nobody) == 1000


def test_what_the_driver_does_not_tell_stays_unknown() -> None:
    assert foreign_bytes(None, frozenset(), frozenset()) is None
