"""The sentences about a measured input pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, format_si, significant
from tfdyno.words.base.amounts import dashed, listed, percent, plural
from tfdyno.words.bench.measurement import seconds_words
from tfdyno.words.choose.advice import a_card, brief

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.advice import Assumed
    from tfdyno.core.measure.feed import Feed, FeedLaw, FeedNeed
    from tfdyno.core.measure.feed_document import FeedReport

BUSY_RATIO = 0.1
"""The share of the CPUs from which on others spoil the figures."""
NO_GAIN = 0.3
"""An exponent below it: more CPUs hardly help."""
_KINDS = {
    "dataset": "tf.data", "arrays": "arrays that Keras batches", "generator": "a Python generator",
    "pydataset": "a PyDataset", "other": "data of another kind",
}  # fmt: skip


def rate_words(rate: Interval) -> str:
    """Write ``2,930 samples/s (2,870–3,000)``; without the range where it has no width."""
    between = range_words(rate)
    return f"{significant(rate.best)} samples/s" + (f" ({between})" if "–" in between else "")


def range_words(rate: Interval) -> str:
    """Write ``2,870–3,000``: three digits, for measured rates lie close together."""
    return dashed(rate.low, rate.high, 3)


def cpus_words(count: float) -> str:
    """Write ``1 CPU``, ``2.5 CPUs``."""
    return f"{count:g} CPU" + ("" if count == 1 else "s")


def headline(told: FeedReport) -> str:
    """Return the rate and what sets it."""
    rate = f"{told.feed.title} gives {rate_words(told.rate_per_s)} on {cpus_words(told.cpus)}"
    return f"{rate}: {pace_words(told)}"


def pace_words(told: FeedReport) -> str:
    """Return what sets the pace, and what follows for more CPUs."""
    busy = f"{significant(told.busy_cpus, 2)} of {cpus_words(told.cpus)} busy"
    if told.pace == "cpu" and told.other_ratio > BUSY_RATIO:
        return (
            f"they are full, {percent(told.other_ratio)} of them with other work; alone it would "
            f"give about {significant(told.alone_per_s.best, 2)}."
        )
    if told.pace == "cpu":
        return "they are full and set the pace."
    if told.pace == "python":
        return f"{_python_words(told)} ({busy})."
    if told.pace == "thread":
        stages = listed(list(told.law.serial_stages)) or "a stage"
        return f"{stages} in one thread sets the pace, and more CPUs do not help ({busy})."
    if told.pace == "disk":
        return f"the disk sets the pace ({busy})."
    return f"neither CPU, disk nor one thread is full ({busy}): it waits, for a network or a lock."


def _python_words(told: FeedReport) -> str:
    feed = told.feed
    if feed.kind == "generator":
        return (
            "the Python generator sets the pace. It runs in one thread and holds Python's lock: "
            "more CPUs do not help"
        )
    if feed.kind == "pydataset":
        workers = plural(max(1, feed.workers), "worker thread")
        return (
            f"Python code in {workers} sets the pace. Python's lock lets one run at a time: more "
            "CPUs do not help, use_multiprocessing=True gives each worker a process"
        )
    python = [one.facts.title for one in told.stages if one.facts.runs_python]
    return (
        f"Python code in {listed(python) or 'the pipeline'} sets the pace. Python's lock lets one "
        "thread run at a time: more CPUs do not help, TensorFlow operations would"
    )


def about(told: FeedReport) -> str:
    """Return what was measured: batches, bytes, the state of the files."""
    feed = told.feed
    size = f"batches of {feed.batch_size:,}, {format_bytes(feed.batch_bytes)} each"
    cost = told.law.sample_cpu_s
    parts = [f"{_KINDS[feed.kind]}, {size}"]
    if cost.best:
        low, high = seconds_words(cost.low), seconds_words(cost.high)
        between = f" ({low} to {high})" if low != high else ""
        parts.append(f"{seconds_words(cost.best)} of a CPU for each sample{between}")
    if told.read_bytes_per_s:
        parts.append(f"{format_si(told.read_bytes_per_s, 'B/s')} of files, {state_words(feed)}")
    return f"{'; '.join(parts)}."


def state_words(feed: Feed) -> str:
    """Say whether the files of the rounds that stand lay in memory."""
    rounds = [one for one in feed.rounds if one.kind != "cold"]
    read, from_disk = sum(one.read_bytes for one in rounds), sum(one.disk_bytes for one in rounds)
    share = from_disk / read if read else 0.0
    return "all in memory (warm)" if share < 0.01 else f"{percent(min(1.0, share))} from the disk"


def limits(told: FeedReport) -> list[tuple[str, str]]:
    """Return what each part could give by itself."""
    law = told.law
    found = []
    if law.sample_cpu_s.best:
        most = significant(told.cpus / law.sample_cpu_s.best)
        text = f"{most} samples/s if they did nothing else"
        found.append((f"the {cpus_words(told.cpus)}", f"{text}{_scaling(told)}"))
    if law.serial_per_s:
        stages = listed(list(law.serial_stages))
        found.append(
            ("one thread", f"{significant(law.serial_per_s.best)} samples/s, with any number of "
                           f"CPUs: {stages}")
        )  # fmt: skip
    found += [("the disk", _disk(told)), ("files forgotten", _cold(told))]
    if told.first_per_s:
        found.append(("first pass", f"{rate_words(told.first_per_s)}, which fills the cache"))
    return [(name, text) for name, text in found if text]


def _scaling(told: FeedReport) -> str:
    points = told.law.points
    if len(points) < 2:
        return "; with fewer CPUs it was not measured"
    first, last = points[0].rate_per_s.best, points[-1].rate_per_s.best
    few = cpus_words(points[0].cpus)
    return f"; {few} gave {significant(first)}, all {significant(last / first, 3)} times that"


def _disk(told: FeedReport) -> str:
    disk = told.feed.disk
    if disk is None:
        return ""
    warm = format_si(disk.read_bytes / disk.warm_s, "B/s")
    what = f"{plural(disk.files, 'file')}, {format_bytes(disk.total_bytes)}"
    where = f" on {disk.file_system}" if disk.file_system else ""
    if told.disk_per_s is None:
        return f"not measured: the files were in memory ({warm} from there; {what}{where})"
    cold = format_si(disk.read_bytes / disk.cold_s, "B/s")
    most = significant(told.disk_per_s)
    return f"{most} samples/s: {cold} in order, {warm} from memory ({what}{where})"


def _cold(told: FeedReport) -> str:
    if told.cold_per_s is None:
        return ""
    share = percent(min(1.0, told.cold_disk_ratio))
    return f"{rate_words(told.cold_per_s)} while {share} of the bytes came from the disk"


def need_cells(need: FeedNeed) -> list[str]:
    """Write a card's row: name, step, need, CPUs for it with their range, and what it gets here."""
    fewest, best, most = need.cpus
    if best is None:
        cpus, between = "none", f"{significant(fewest, 2)}–none" if fewest else "–"
    else:
        cpus = significant(best, 2)
        between = dashed(fewest or best, most) if most else f"{significant(fewest or best, 2)}–none"
    return [
        need.gpu_name,
        seconds_words(need.step_s.best),
        significant(need.needed_per_s.best),
        dashed(need.needed_per_s.low, need.needed_per_s.high),
        cpus,
        between,
        significant(need.fed_ratio, 2),
    ]


def need_sentence(need: FeedNeed, told: FeedReport) -> str:
    """Say what the measured machine does for a card: how much of it is fed, and what it needs."""
    share, fed = significant(need.fed_ratio, 2), told.fed_ratio(need)
    card = f"{a_card(brief(need.gpu_name))} ({dashed(fed.low, fed.high)})"
    here = f"These {cpus_words(told.cpus)} feed {share} of {card}"
    if need.cpus[1] is None:
        stages = listed(list(told.law.serial_stages)) or "the pipeline as it is"
        return f"{here}; no number of CPUs feeds it, for {stages} gives no more."
    return f"{here}; it needs {significant(need.cpus[1], 2)} of them."


def assumption_words(feed: Feed, law: FeedLaw, assumed: Assumed) -> str:
    """Return what ``advise`` takes for the input of every offer."""
    rate, cpus = law.points[-1].rate_per_s, law.points[-1].cpus
    where = feed.environment.cpu if feed.environment else "the machine that was measured"
    if feed.cpu_kind == "core":
        worth = f"a vCPU, a thread, as {assumed.vcpu_core_ratio:g} of such a core"
    else:
        worth = "a vCPU as one of them"
    speed = assumed.offer_cpu_ratio
    return (
        f"input of {feed.reference} as measured {feed.measured_on}: {significant(rate.best)} "
        f"samples/s on {cpus_words(cpus)} of {where}; {worth}, {speed:g}–{1.0 / speed:.2g} times "
        "as fast; disk and network of the offer are not known"
    )


def warnings_of(told: FeedReport) -> list[str]:
    """Return what a reader must know to trust the figures."""
    feed = told.feed
    found = list(feed.notes)
    if told.other_ratio > BUSY_RATIO:
        found.append(
            f"Other processes took {percent(told.other_ratio)} of the CPUs meanwhile. What is said "
            "of other numbers of CPUs is by the CPU time of a sample, as if they had not; a quiet "
            "machine tells more."
        )
    apart = ("cold", "first") if told.first_per_s else ("cold",)
    whole = [one for one in feed.rounds if one.kind not in apart and one.cpus == told.cpus]
    if len(whole) < 2:
        found.append("One round with all CPUs: there is no range.")
    if told.needs and feed.kind == "dataset" and told.grows is not None and told.grows < NO_GAIN:
        found.append("It hardly gives more with more CPUs: the number that a card needs is unsure.")
    return found
