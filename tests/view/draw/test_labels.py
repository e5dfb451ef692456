"""Labels keep clear of each other and of the points they name."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.view.draw.labels import Anchor, Box, along, place, text_width

FRAME = Box(0, 0, 800, 400)
POINTS = st.lists(
    st.builds(
        Anchor,
        x=st.floats(20, 780),
        y=st.floats(20, 380),
        text=st.text("abcdefgh ×0123", min_size=1, max_size=16),
    ),
    max_size=25,
)


def box_of(text: str, x: float, y: float) -> Box:
    return Box(x, y - 7.5, x + text_width(text, 12), y + 7.5)


@given(POINTS)
def test_labels_never_cover_each_other_or_a_point(anchors: list[Anchor]) -> None:
    placed = place(anchors, frame=FRAME, obstacles=[])
    boxes = [box_of(label.text, label.x, label.y) for label in placed]
    assert not any(one.overlaps(two) for one, two in combinations(boxes, 2))
    dots = [Box(a.x - 3.9, a.y - 3.9, a.x + 3.9, a.y + 3.9) for a in anchors]
    assert not any(box.overlaps(dot) for box in boxes for dot in dots)


@given(POINTS)
def test_labels_stay_in_the_frame(anchors: list[Anchor]) -> None:
    for label in place(anchors, frame=FRAME, obstacles=[]):
        assert box_of(label.text, label.x, label.y).inside(FRAME)


def test_a_label_that_must_stand_finds_the_free_corner() -> None:
    must = Anchor(x=400, y=200, text="pick", must=True, rings=2)
    crowd = [Anchor(x=x, y=y, text="") for x in range(250, 800, 10) for y in range(0, 401, 10)]
    (label,) = place([must, *crowd], frame=FRAME, obstacles=[])
    box = box_of(label.text, label.x, label.y)
    assert box.right <= 250
    assert abs(label.y - 200) < 20
    assert label.leader is not None


def test_a_label_without_a_free_place_is_dropped_unless_it_must_stand() -> None:
    blocked = [FRAME]
    spare = Anchor(x=400, y=200, text="spare")
    must = Anchor(x=400, y=200, text="pick", must=True)
    assert [label.text for label in place([spare, must], frame=FRAME, obstacles=blocked)] == [
        "pick"
    ]


def test_a_distant_label_gets_a_line_that_starts_at_the_rim_of_its_point() -> None:
    crowd = [Box(150, 150, 250, 250)]
    label = place(
        [Anchor(x=200, y=200, text="far", radius=10, rings=7)], frame=FRAME, obstacles=crowd
    )[0]
    assert label.leader is not None
    x, y = label.leader[:2]
    assert ((x - 200) ** 2 + (y - 200) ** 2) ** 0.5 > 10


def test_a_point_with_room_has_its_label_at_its_right_without_a_line() -> None:
    label = place([Anchor(x=100, y=100, text="here")], frame=FRAME, obstacles=[])[0]
    assert label.x == 110
    assert label.y == 100
    assert label.leader is None


def test_a_line_is_covered_from_end_to_end() -> None:
    boxes = along(0, 0, 60, 0)
    assert boxes[0].left == -2
    assert boxes[-1].right == 62
    assert all(two.left - one.right <= 2 for one, two in pairwise(boxes))
