"""The sentences about a measured input pipeline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.advice import exactly
from tests.feeds import DISK, feed, law, round_, stage
from tests.view.feeds_told import A100, RATES, told

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.advice import Assumed
from tfdyno.words.data import feed as words

ASSUMED = Assumed(
    spot_overhead_ratio=0.0, electricity_usd_per_kwh=0.2, default_samples=1, default_batch_size=1,
    vcpu_core_ratio=0.65, offer_cpu_ratio=0.7,
)  # fmt: skip


def test_the_headline_is_the_rate_and_what_sets_it() -> None:
    assert words.headline(told()) == (
        "net gives 200 samples/s (190–210) on 2 CPUs: they are full and set the pace."
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"other_ratio": 0.38},
            "they are full, 38% of them with other work; alone it would give about 200.",
        ),
        (
            {"pace": "thread", "busy_cpus": 1.02},
            "batch in one thread sets the pace, and more CPUs do not help (1 of 2 CPUs busy).",
        ),
        ({"pace": "disk", "busy_cpus": 0.5}, "the disk sets the pace (0.50 of 2 CPUs busy)."),
        (
            {"pace": "waiting", "busy_cpus": 0.5},
            "neither CPU, disk nor one thread is full (0.50 of 2 CPUs busy): it waits, for a "
            "network or a lock.",
        ),
        (
            {"pace": "python", "busy_cpus": 1.0, "feed": feed(kind="generator")},
            "the Python generator sets the pace. It runs in one thread and holds Python's lock: "
            "more CPUs do not help (1 of 2 CPUs busy).",
        ),
        (
            {"pace": "python", "busy_cpus": 1.0, "feed": feed(kind="pydataset", workers=4)},
            "Python code in 4 worker threads sets the pace. Python's lock lets one run at a time: "
            "more CPUs do not help, use_multiprocessing=True gives each worker a process (1 of 2 "
            "CPUs busy).",
        ),
    ],
)
def test_what_sets_the_pace_is_said_with_what_follows(
    changes: dict[str, object], sentence: str
) -> None:
    assert words.pace_words(told(**changes)) == sentence


def test_python_in_a_stage_is_named() -> None:
    load = replace(RATES[2], facts=stage("map(load)", 95.0, runs_python=True))
    seen = told(pace="python", stages=(*RATES[:2], load))
    assert "Python code in map(load) sets the pace" in words.pace_words(seen)
    assert "TensorFlow operations would" in words.pace_words(seen)


def test_what_was_measured_in_a_line() -> None:
    assert words.about(told()) == (
        "tf.data, batches of 10, 9.77 KiB each; 10.0 ms of a CPU for each sample; 200 kB/s of "
        "files, all in memory (warm)."
    )
    wide = replace(told().law, sample_cpu_s=Interval(low=0.009, best=0.01, high=0.012))
    assert "10.0 ms of a CPU for each sample (9.00 ms to 12.0 ms);" in words.about(told(law=wide))
    from_disk = feed(rounds=(round_(disk_bytes=50_000),))
    assert "25% from the disk" in words.about(told(feed=from_disk))
    assert "of files" not in words.about(told(read_bytes_per_s=0.0))


def test_limits_are_told_one_by_one() -> None:
    assert words.limits(told()) == [
        ("the 2 CPUs", "200 samples/s if they did nothing else; 1 CPU gave 110, all 1.82 times "
                       "that"),
        ("one thread", "2,170 samples/s, with any number of CPUs: batch"),
        ("the disk", "1,000 samples/s: 1 MB/s in order, 10 MB/s from memory (100 files, 97.7 KiB "
                     "on ext4)"),
        ("files forgotten", "40 samples/s (30–50) while 50% of the bytes came from the disk"),
    ]  # fmt: skip


def test_a_disk_that_was_not_read_is_said() -> None:
    seen = dict(words.limits(told(disk_per_s=None)))
    assert seen["the disk"].startswith("not measured: the files were in memory (10 MB/s from")
    assert "the disk" not in dict(words.limits(told(feed=feed(disk=None))))
    assert "on ext4" not in dict(
        words.limits(told(feed=feed(disk=replace(DISK, file_system=""))))
    )["the disk"]  # fmt: skip


def test_one_number_of_cpus_has_no_scaling() -> None:
    seen = dict(words.limits(told(law=law((2.0, 200.0)))))
    assert seen["the 2 CPUs"].endswith("with fewer CPUs it was not measured")
    assert "one thread" not in seen


def test_the_pass_that_fills_a_cache_is_told() -> None:
    seen = dict(words.limits(told(first_per_s=exactly(50.0))))
    assert seen["first pass"] == "50 samples/s, which fills the cache"


def test_a_card_has_its_need_and_the_cpus_for_it() -> None:
    assert words.need_cells(A100) == [
        "A100", "25.0 ms", "400", "300–500", "4", "2.8–5.4", "0.50",
    ]  # fmt: skip
    # by hand: 200 of 500 and of 300 samples/s
    assert words.need_sentence(A100, told()) == (
        "These 2 CPUs feed 0.50 of an A100 (0.40–0.67); it needs 4 of them."
    )


def test_a_card_that_nothing_feeds_is_told_why() -> None:
    beyond = replace(A100, cpus=(12.0, None, None))
    assert words.need_cells(beyond)[4:6] == ["none", "12–none"]
    assert words.need_sentence(beyond, told()) == (
        "These 2 CPUs feed 0.50 of an A100 (0.40–0.67); no number of CPUs feeds it, for batch "
        "gives no more."
    )
    assert words.need_cells(replace(A100, cpus=(2.8, 4.0, None)))[5] == "2.8–none"
    assert words.need_cells(replace(A100, cpus=(None, None, None)))[5] == "–"


def test_what_a_reader_must_know_is_told() -> None:
    assert words.warnings_of(told()) == []
    assert "Other processes took 38%" in words.warnings_of(told(other_ratio=0.38))[0]
    one = told(feed=feed(rounds=(round_(),), notes=("A note.",)))
    assert words.warnings_of(one) == ["A note.", "One round with all CPUs: there is no range."]
    cached = feed(rounds=(round_(50.0, kind="first"), round_()))
    alone = ["One round with all CPUs: there is no range."]
    assert words.warnings_of(told(feed=cached, first_per_s=exactly(50.0))) == alone
    assert "hardly gives more" in words.warnings_of(told(grows=0.1))[0]
    assert words.warnings_of(told(grows=0.1, needs=())) == []


def test_what_advise_takes_for_the_input() -> None:
    rates = law((2.0, 200.0))
    told_ = words.assumption_words(feed(cpu_kind="thread"), rates, ASSUMED)
    assert told_ == (
        "input of train.py as measured 2026-11-20: 200 samples/s on 2 CPUs of the machine that was "
        "measured; a vCPU as one of them, 0.7–1.4 times as fast; disk and network of the offer are "
        "not known"
    )
    core = words.assumption_words(feed(cpu_kind="core"), rates, ASSUMED)
    assert "a vCPU, a thread, as 0.65 of such a core, 0.7–1.4 times" in core


def test_ranges_have_three_digits() -> None:
    assert words.range_words(Interval(low=2871.5, best=2933.0, high=2996.2)) == "2,870–3,000"
    assert words.cpus_words(2.5) == "2.5 CPUs"
