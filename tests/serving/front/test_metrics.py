from __future__ import annotations

from tfdyno.serving.front.metrics import Counter, FrontMetrics, Histogram, told


def test_buckets_are_cumulated_and_a_bound_belongs_to_its_bucket() -> None:
    histogram = Histogram((1, 2, 4))
    for value in (1, 2, 2, 3, 9):
        histogram.add(value, m="a")
    assert histogram.lines("h") == [
        'h_bucket{m="a",le="1"} 1', 'h_bucket{m="a",le="2"} 3', 'h_bucket{m="a",le="4"} 4',
        'h_bucket{m="a",le="+Inf"} 5', 'h_sum{m="a"} 17', 'h_count{m="a"} 5',
    ]  # fmt: skip


def test_counters_are_kept_by_labels_and_labels_are_escaped() -> None:
    counter = Counter()
    counter.add(code="200")
    counter.add(2, code="200")
    counter.add(code="400")
    assert counter.lines("c") == ['c{code="200"} 3', 'c{code="400"} 1']
    assert told((("model", 'a"\\\n'),)) == '{model="a\\"\\\\\\n"}'


def test_large_counts_are_written_in_full() -> None:
    counter = Counter()
    counter.add(123_456_789)
    assert counter.lines("c") == ["c 123456789"]


def test_every_metric_of_the_page_has_a_type_once() -> None:
    page = FrontMetrics().page()
    names = [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) == page.count("# HELP")
