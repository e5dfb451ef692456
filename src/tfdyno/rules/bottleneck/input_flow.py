"""Data that come too late: nothing made ahead, nothing kept, files read one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, format_si
from tfdyno.rules.bottleneck.draft import Draft, duration, evidence, of_step, percent, taking
from tfdyno.rules.bottleneck.gains import amdahl, with_less_work, without_wait
from tfdyno.rules.bottleneck.input_stage import Timed, found, heavy, reading_s, timed
from tfdyno.rules.bottleneck.seen import (
    calls_at_once,
    draws,
    fed_s,
    reads,
    runs_python,
    samples_of_step,
    waits_itself,
)
from tfdyno.rules.bottleneck.tables import cause, limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.measure.step_facts import InputFacts
    from tfdyno.rules.bottleneck.seen import Seen

_IN_ORDER = {"shuffle", "repeat", "random"}
"""Kinds of stages behind which a cache would change what is learned, or never end."""


def missing_prefetch(seen: Seen) -> Iterator[Draft]:
    """Find a step and an input that take turns instead of running side by side."""
    given = seen.input
    if given is None or given.prefetches or given.kind not in {"dataset", "generator"}:
        return
    if given.kind == "generator" and seen.facts.backend == "jax":
        return  # Keras reads it without a pipeline there
    gain = without_wait(seen, seen.split.batch_s, ahead=True)
    told = evidence("no stage makes batches ahead of the step", "stages of the pipeline")
    yield found(seen, "input.missing_prefetch", gain, told)


def no_cache(seen: Seen) -> Iterator[Draft]:
    """Find work that is the same in every epoch, on data that fit in memory."""
    given = seen.input
    if given is None:
        return
    for by_hand in (False, True):
        kept = cacheable(seen, given, by_hand=by_hand)
        saved_s = sum(one.wall_s for one in kept)
        if saved_s <= 0.0 or saved_s < limits()["stage_ratio"] * seen.split.batch_s:
            continue
        gain = with_less_work(
            seen, saved_s, cause("input.no_cache_though_fits").removes, ahead=given.prefetches
        )
        last = kept[-1]
        size = evidence(
            "what comes out of {stage} is {size} an epoch",
            "bytes of the stages",
            stage=last.stage.title,
            size=format_bytes(_size(seen, given, last)),
        )
        share = evidence(
            "{share} of the pipeline is the same in every epoch",
            "operations of the stages",
            share=percent(saved_s / seen.split.batch_s),
        )
        yield found(seen, "input.no_cache_though_fits", gain, size, share, one=last,
                    values={"by_hand": "yes" if by_hand else "no"},
                    settings={} if by_hand else None)  # fmt: skip
        return


def slow_start(seen: Seen) -> Iterator[Draft]:
    """Find epochs that wait until a new iterator has filled its shuffle buffer."""
    given, steps = seen.facts.input, seen.facts.steps_per_epoch
    if given is None or given.is_cached or not steps or seen.facts.epochs == 1:
        return
    if seen.facts.source == "loop" and not given.samples_per_epoch:
        return  # then steps are counted from one checkpoint to the next, which opens no iterator
    part_s = max(0.0, given.start_s - limits()["start_of_iterator_s"]) / steps
    if not seen.counts(part_s):
        return
    name = "input.slow_start"
    kept = cacheable(seen, given, by_hand=False)
    told = evidence(
        "a new iterator gives its first batch after {start}; an epoch has {steps:,} "
        "steps of {step}",
        "the pipeline by itself",
        start=duration(given.start_s),
        steps=steps,
        step=duration(seen.step_s),
    )
    shuffle = next((one for one in given.stages if one.kind == "shuffle"), None)
    yield Draft(
        cause=name,
        evidence=(told,),
        gain=amdahl(seen.step_s + part_s, part_s, cause(name).removes),
        values={"start": duration(given.start_s)},
        settings={"input.cache": "true"} if kept else {},
        place=shuffle.place if shuffle else "",
    )


def slow_copy(seen: Seen) -> Iterator[Draft]:
    """Find a card that waits until the batch has come over the bus."""
    part_s, operations = fed_s(seen), seen.facts.operations
    if operations is None or not seen.counts(part_s):
        return
    told = [evidence("copies to the card: {part}", "profile", part=of_step(seen, part_s))]
    if operations.fed_bytes > 0.0:
        rate = format_bytes(operations.fed_bytes / operations.fed_s)
        told.append(
            evidence(
                "{size} a step, {rate} a second",
                "profile",
                size=format_bytes(operations.fed_bytes),
                rate=rate,
            )
        )
    yield taking(seen, "input.slow_copy", part_s, *told)


def tiny_files(seen: Seen) -> Iterator[Draft]:
    """Find about a file for each sample: opening them takes longer than reading them."""
    given = seen.input
    if given is None or not _are_tiny(given):
        return
    read_s = reading_s(seen, given)
    if read_s < limits()["stage_ratio"] * seen.split.batch_s:
        return
    told = evidence(
        "{files:,} files for {samples:,} samples",
        "files",
        files=given.files,
        samples=given.samples_per_epoch,
    )
    gain = with_less_work(seen, read_s, cause("input.tiny_files").removes, ahead=given.prefetches)
    yield found(seen, "input.tiny_files", gain, told, one=_reader(seen, given))


def slow_read(seen: Seen) -> Iterator[Draft]:
    """Find a pipeline that waits for the disk or the network."""
    given = seen.input
    if given is None or _are_tiny(given) or not waits_itself(seen, given):
        return
    read_s = reading_s(seen, given)
    if read_s < limits()["stage_ratio"] * seen.split.batch_s:
        return
    rate = format_si(given.read_bytes_per_s, "B/s")
    told = evidence(
        "reads {rate} and keeps {share} of the CPUs busy",
        "the pipeline by itself",
        rate=rate,
        share=percent(given.cpu_ratio),
    )
    gain = with_less_work(seen, read_s, cause("input.slow_read").removes, ahead=given.prefetches)
    yield found(seen, "input.slow_read", gain, told, one=_reader(seen, given))


def missing_interleave(seen: Seen) -> Iterator[Draft]:
    """Find several files that are read one after the other."""
    given = seen.input
    reader = _reader(seen, given) if given else None
    if given is None or reader is None or given.files < 2:
        return
    if any(one.parallel_calls not in (0, 1) and reads(one) for one in given.stages):
        return
    if any(one.kind == "interleave" and one.parallel_calls not in (0, 1) for one in given.stages):
        return
    slots = limits()["waiting_calls"] if waits_itself(seen, given) else seen.cpus
    read_s = reading_s(seen, given)
    batch_s = seen.split.batch_s - read_s * (1.0 - 1.0 / max(1.0, min(slots, given.files)))
    told = evidence(
        "{files:,} files are read one after the other", "stages of the pipeline", files=given.files
    )
    gain = without_wait(seen, batch_s, ahead=True)
    yield found(seen, "input.missing_interleave", gain, told, one=reader)


def keeps_order(seen: Seen) -> Iterator[Draft]:
    """Find a parallel stage that waits for its slowest element, though the order is free."""
    given = seen.input
    if given is None or given.cpu_ratio > limits()["order_idle_ratio"]:
        return
    for one in heavy(seen, given):
        calls = calls_at_once(one.stage, seen.cpus)
        idle_s = one.wall_s - one.stage.own_s / calls
        if one.stage.keeps_order and calls > 1 and idle_s > 0.0:
            told = evidence(
                "{stage} gives elements in order and keeps {share} of the CPUs busy",
                "stages of the pipeline",
                stage=one.stage.title,
                share=percent(given.cpu_ratio),
            )
            gain = with_less_work(
                seen, idle_s, cause("input.deterministic_order").removes, ahead=given.prefetches
            )
            yield found(seen, "input.deterministic_order", gain, told, one=one,
                        values={"idle": duration(idle_s)})  # fmt: skip
            return


def cacheable(seen: Seen, given: InputFacts, *, by_hand: bool) -> tuple[Timed, ...]:
    """Return stages whose work a cache can keep, if what comes out of them fits in memory.

    As the recipe puts it in: all before the first that draws, shuffles or runs Python. By hand
    the order can be changed, so that a shuffle comes behind the work.
    """
    if given.is_cached or given.kind != "dataset" or seen.facts.epochs == 1:
        return ()
    if not given.samples_per_epoch or not seen.facts.batch_size:
        return ()
    kept: list[Timed] = []
    for one in timed(seen, given):
        if draws(one.stage) or (runs_python(one.stage) and not by_hand):
            break
        if one.stage.kind not in _IN_ORDER:
            kept.append(one)
        elif not by_hand:
            break
    while kept and not (kept[-1].stage.kind == "map" or reads(kept[-1].stage)):
        kept.pop()  # nothing behind the last work is worth keeping
    if not kept:
        return ()
    return tuple(kept) if 0 < _size(seen, given, kept[-1]) <= _room_bytes(seen) else ()


def _size(seen: Seen, given: InputFacts, last: Timed) -> float:
    batches = given.samples_per_epoch / samples_of_step(seen)
    return (last.stage.output_bytes or given.batch_bytes) * batches


def _room_bytes(seen: Seen) -> float:
    free = seen.facts.host.memory_free_bytes
    return limits()["cache_of_free_ratio"] * free if free else limits()["cache_blind_bytes"]


def _are_tiny(given: InputFacts) -> bool:
    if given.files < limits()["tiny_files_least"] or not given.samples_per_epoch:
        return False
    return given.samples_per_epoch / given.files <= limits()["tiny_file_samples"]


def _reader(seen: Seen, given: InputFacts) -> Timed | None:
    return next((one for one in heavy(seen, given) if reads(one.stage)), None)


INPUT_FLOW_RULES = (
    missing_prefetch, no_cache, slow_start, tiny_files, slow_read, missing_interleave, keeps_order,
    slow_copy,
)  # fmt: skip
