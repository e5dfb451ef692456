"""Python in the loop, and too few CPUs for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.rules.bottleneck.callback import CALLBACK_CAUSES
from tfdyno.rules.bottleneck.draft import (
    Draft,
    duration,
    evidence,
    of_step,
    percent,
    quoted,
    taking,
)
from tfdyno.rules.bottleneck.gains import amdahl, saving
from tfdyno.rules.bottleneck.split import share
from tfdyno.rules.bottleneck.tables import cause, limits, matching
from tfdyno.words.base.language import say
from tfdyno.words.diagnose.told import fact_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.measure.bottleneck import Gain
    from tfdyno.rules.bottleneck.seen import Seen

_PLACE = " in "
_LINES = 3
_HEAVY = ("gemm", "conv")
_MOST_TEXT = 80
"""Letters of a line that is told as it is written."""


def run_eagerly(seen: Seen) -> Iterator[Draft]:
    """Find a step whose operations are each started by Python."""
    facts = seen.facts
    if facts.execution != "eager" and not matching("eager", facts.python_steps):
        return
    if facts.uncompiled_layers:
        return  # ``uncompiled_layer`` tells why
    gain = _graph_gain(seen)
    if gain is None:
        return
    told = [evidence("the step runs operation by operation from Python", "the script")]
    if facts.operations:
        told.append(
            evidence(
                "outside of operations: {part}; {count:,.0f} operations a step",
                "profile of a held batch",
                part=of_step(seen, seen.split.inside_s),
                count=facts.operations.count_per_step,
            )
        )
    else:
        told.append(evidence("a step takes {step}", "steps", step=duration(seen.step_s)))
    # A recipe does not reach into a loop of the script's own.
    settings: dict[str, str] | None = None if facts.source == "run" else {}
    yield Draft(cause="host.run_eagerly", evidence=tuple(told), gain=gain, settings=settings,
                values={"source": facts.source}, place=_slowest_line(seen))  # fmt: skip


def uncompiled_layer(seen: Seen) -> Iterator[Draft]:
    """Find layers that JAX cannot compile, for which Keras runs the whole step eagerly."""
    layers = seen.facts.uncompiled_layers
    if not layers:
        return
    told = [evidence("{layer} says supports_jit = False", "layers", layer=one) for one in layers]
    yield Draft(cause="host.uncompiled_layer", evidence=tuple(told), gain=_graph_gain(seen),
                values={"layer": layers[0]}, settings={})  # fmt: skip


def loss_each_step(seen: Seen) -> Iterator[Draft]:
    """Find callbacks for which Keras on JAX waits for each step before it starts the next one."""
    facts, part_s = seen.facts, seen.split.parts_s["host"]
    if facts.execution == "eager" or not facts.read_each_step or not seen.counts(part_s):
        return
    told = (
        *(
            evidence("{callback} has a method for the end of each batch", "callbacks",
                     callback=fact_words(one))
            for one in facts.read_each_step
        ),
        evidence(
            "the host alone, before the next step starts: {part}",
            "steps with and without their data",
            part=of_step(seen, part_s),
        ),
    )  # fmt: skip
    name = facts.read_each_step[0]
    yield taking(seen, "host.loss_each_step", part_s, *told, place=_place(name),
                 values={"callback": name.partition(_PLACE)[0]},
                 explained_by=CALLBACK_CAUSES)  # fmt: skip


def numpy_in_step(seen: Seen) -> Iterator[Draft]:
    """Find Python functions that the graph of the step calls."""
    calls = matching("python", seen.facts.python_steps)
    gain = _inside_gain(seen, "host.numpy_in_step") if calls else None
    if gain is None:
        return
    told = [quoted(text, "operations of the step") for text in calls]
    if seen.facts.operations:
        told.append(
            evidence(
                "Python in the step: {part}",
                "profile of a held batch",
                part=of_step(seen, seen.split.inside_s),
            )
        )
    yield Draft(cause="host.numpy_in_step", evidence=tuple(told), gain=gain,
                values={"call": calls[0]}, place=_place(calls[0]))  # fmt: skip


def python_loop(seen: Seen) -> Iterator[Draft]:
    """Find Python between two calls of the step: the loop's own, or waiting for each result."""
    part_s = seen.split.between_s
    if seen.facts.source == "run" or not seen.counts(part_s):
        return
    syncs = _waiting_lines(seen)
    name = "host.sync_each_step" if syncs else "host.python_loop"
    told = (
        evidence(
            "between two calls of the step: {part}", "steps of the loop", part=of_step(seen, part_s)
        ),
        *(
            evidence(
                "{line}: {each} a step", "lines of the script", line=line, each=duration(each_s)
            )
            for line, each_s in seen.facts.python_lines[:_LINES]
        ),
    )
    place, call = syncs[0] if syncs else (_slowest_line(seen), "")
    yield taking(seen, name, part_s, *told, values={"call": call}, place=place)


def few_threads(seen: Seen) -> Iterator[Draft]:
    """Find a limit of threads that leaves CPUs idle."""
    host, compute_s = seen.facts.host, seen.split.parts_s["compute"] * _long_share(seen)
    threads = host.threads_intra
    if seen.facts.device != "cpu" or not 0 < threads < int(seen.cpus) or not seen.counts(compute_s):
        return
    if host.cpu_ratio > 0.0 and host.cpu_ratio > limits()["limited_busy_ratio"]:
        return
    idle_ratio = 1.0 - threads / int(seen.cpus)
    low, best, high = (share * idle_ratio for share in cause("host.few_threads").removes)
    settings = {"threads_intra": str(int(seen.cpus))}
    if host.threads_inter == 1:
        settings["threads_inter"] = str(int(seen.cpus))
    told = [
        evidence(
            "{threads} threads for an operation, {cpus} CPUs",
            "tf.config",
            threads=threads,
            cpus=int(seen.cpus),
        )
    ]
    if host.cpu_ratio > 0.0:
        told.append(
            evidence("{share} of the CPUs were busy", "steps", share=percent(host.cpu_ratio))
        )
    yield Draft(cause="host.few_threads", evidence=tuple(told), settings=settings,
                gain=amdahl(seen.step_s, compute_s, (low, best, high)),
                values={"threads": str(threads), "cpus": str(int(seen.cpus))})  # fmt: skip


def bound_to_few(seen: Seen) -> Iterator[Draft]:
    """Find a script that binds itself to fewer CPUs than it was given."""
    host = seen.facts.host
    if seen.facts.device != "cpu" or host.offered_cpus <= seen.cpus:
        return
    work_s = seen.split.parts_s["compute"] + seen.split.parts_s["input"]
    idle_ratio = 1.0 - seen.cpus / host.offered_cpus
    low, best, high = (share * idle_ratio for share in cause("host.affinity").removes)
    told = (
        evidence(
            "{cpus:g} of {all:g} CPUs may be used",
            "affinity",
            cpus=seen.cpus,
            all=host.offered_cpus,
        ),
        evidence("{share} of these were busy", "steps", share=percent(host.cpu_ratio)),
    )
    yield Draft(cause="host.affinity", evidence=told,
                gain=amdahl(seen.step_s, work_s, (low, best, high)),
                values={"usable": f"{seen.cpus:g}", "cpus": f"{host.offered_cpus:g}"})  # fmt: skip


def container_limit(seen: Seen) -> Iterator[Draft]:
    """Find a container's CPU limit that stops the training for part of the time."""
    host = seen.facts.host
    if host.throttled_ratio < limits()["throttled_ratio"]:
        return
    part_s = min(1.0, host.throttled_ratio) * seen.step_s
    told = (
        evidence(
            "held back for {share} of the time", "cpu.stat", share=percent(host.throttled_ratio)
        ),
        evidence(
            "{cpus:g} of {all} CPUs may be used", "cpu.max, affinity", cpus=seen.cpus, all=host.cpus
        ),
    )
    yield taking(seen, "host.container_limit", part_s, *told,
                 settings={"threads_intra": str(max(1, int(seen.cpus)))},
                 values={"usable": f"{seen.cpus:g}", "cpus": str(host.cpus),
                         "throttled": percent(host.throttled_ratio)})  # fmt: skip


def python_thread(seen: Seen) -> Iterator[Draft]:
    """Find another thread of the script that runs Python all the time, in turns with it."""
    given = seen.facts.input
    if given is not None and given.kind in {"generator", "pydataset"}:
        return  # such threads make the batches
    busy = [one for one in seen.facts.python_threads if one[1] >= limits()["busy_thread_cpus"]]
    parts = seen.split.parts_s
    part_s = parts["host"] + parts["launch"]
    if not busy or not seen.counts(part_s):
        return
    place, cpus = busy[0]
    told = (
        evidence(
            "a thread at {place} kept {cpus:.2f} CPUs busy",
            "CPU times of Python's threads",
            place=place,
            cpus=cpus,
        ),
        evidence(
            "starting operations and Python between them: {part}",
            "steps",
            part=of_step(seen, part_s),
        ),
    )
    yield taking(seen, "host.python_thread", part_s, *told, place=place)


def busy_interpreter(seen: Seen) -> Iterator[Draft]:
    """Find a call of the step that waits while the device idles: another thread has the lock."""
    part_s, operations = seen.split.unseen_s, seen.facts.operations
    if operations is None or not seen.counts(part_s):
        return
    told = (
        evidence(
            "the device works for {busy} of a step on a held batch, which takes {held}",
            "profile",
            busy=duration(operations.busy_s),
            held=duration(seen.split.held_s),
        ),
        evidence("beyond what starting takes: {part}", "profile", part=of_step(seen, part_s)),
    )
    yield taking(seen, "host.busy_host", part_s, *told, explained_by=("host.python_thread",))


def busy_cpus(seen: Seen) -> Iterator[Draft]:
    """Find other processes that take the CPUs: the script's own, or somebody else's."""
    host = seen.facts.host
    others_ratio = host.other_cpu_ratio - host.children_cpu_ratio
    rows = (
        ("host.own_processes", host.children_cpu_ratio, say("processes that the script started")),
        ("host.other_processes", others_ratio, say("other processes")),
    )
    total = host.cpu_ratio + max(host.other_cpu_ratio, host.children_cpu_ratio)
    for name, ratio, whose in rows:
        if ratio < limits()["other_cpu_ratio"] or total < limits()["host_full_ratio"]:
            continue
        if name == "host.own_processes" and seen.facts.worker_count > 1:
            continue  # most likely the other workers: they train as well
        told = evidence(
            "{whose} took {share} of the CPUs, this training {own}",
            "CPU times",
            whose=whose,
            share=percent(ratio),
            own=percent(host.cpu_ratio),
        )
        work_s = sum(seen.split.parts_s[part] for part in ("compute", "input", "host", "launch"))
        low, best, high = (share * min(ratio, 0.9) for share in cause(name).removes)
        yield Draft(cause=name, evidence=(told,), values={"other": percent(ratio)},
                    gain=amdahl(seen.step_s, work_s, (low, best, high)))  # fmt: skip


def _inside_gain(seen: Seen, name: str) -> Gain | None:
    """Return the gain of Python inside of the step; without a profile a guess, in a wide range."""
    removes = cause(name).removes
    if seen.facts.operations is None:
        shares = tuple(limits()[f"python_without_profile_{end}"] for end in ("low", "best", "high"))
        low, best, high = (share * take for share, take in zip(shares, removes, strict=True))
        return amdahl(seen.step_s, seen.split.held_s or seen.step_s, (low, best, high))
    part_s = seen.split.inside_s
    return amdahl(seen.step_s, part_s, removes) if seen.counts(part_s) else None


def _graph_gain(seen: Seen) -> Gain | None:
    """Return the gain of the same step as a graph, which starts operations without Python.

        step = not Python's + products and convolutions + share * other operations + count * start

    In a run all of the host's part is the eager step's: its Python lets go of what the step before
    made. In a loop what lies between two calls of the step stays.
    """
    operations, parts_s = seen.facts.operations, seen.split.parts_s
    if operations is None:
        return _inside_gain(seen, "host.run_eagerly")
    if seen.facts.backend == "jax":
        return _program_gain(seen)
    sure = amdahl(seen.step_s, seen.split.inside_s, cause("host.run_eagerly").removes)
    python_s = parts_s["host"] - (seen.split.between_s if seen.facts.source == "loop" else 0.0)
    if not seen.counts(python_s):
        return None
    heavy = sum(operations.class_s.get(name, 0.0) for name in _HEAVY)
    whole = sum(operations.class_s.values())
    other_s = parts_s["compute"] * (1.0 - heavy / whole) if whole else 0.0
    ends = {
        end: python_s
        + (1.0 - limits()[f"graph_small_ratio_{end}"]) * other_s
        - operations.count_per_step * limits()[f"graph_operation_s_{end}"]
        for end in ("best", "high")
    }
    likely = saving(seen.step_s, 0.0, ends["best"], ends["high"])
    return replace(likely, low=min(sure.low, likely.best))


def _program_gain(seen: Seen) -> Gain:
    """Return the gain of the same step as one program of JAX's.

        step = share * products and convolutions + start of a call

    Their seconds in an eager step hold waiting of its threads, so that a program may take a small
    share of them.
    """
    heavy_s = seen.split.parts_s["compute"] * share(seen.split.compute_s, *_HEAVY)
    started_s = seen.step_s - limits()["program_start_s"]
    ends = {
        end: started_s - limits()[f"program_heavy_ratio_{end}"] * heavy_s
        for end in ("best", "high")
    }
    low_s = limits()["program_inside_ratio_low"] * seen.split.inside_s
    best_s, high_s = (max(0.0, ends[end]) for end in ("best", "high"))
    return saving(seen.step_s, min(low_s, best_s), best_s, high_s)


def _long_share(seen: Seen) -> float:
    """Share of computing in operations long enough to be shared between threads."""
    operations, least_s = seen.facts.operations, limits()["parallel_operation_s"]
    if operations is None or not operations.largest or operations.busy_s <= 0.0:
        return 1.0 if seen.mean_operation_s == 0.0 else float(seen.mean_operation_s >= least_s)
    long_s = sum(seconds_s for _, seconds_s in operations.largest if seconds_s >= least_s)
    return min(1.0, long_s / operations.busy_s)


def _waiting_lines(seen: Seen) -> list[tuple[str, str]]:
    """List lines that read a result, with what they say; none where most of the time is in others.

    A CPU has a result when the call of the step returns: nothing is waited for.
    """
    if seen.facts.device == "cpu":
        return []
    lines, texts = seen.facts.python_lines, seen.facts.python_texts
    waiting = [one for one in lines if matching("sync", [texts.get(one[0], "")])]
    if 2 * sum(each_s for _, each_s in waiting) < sum(each_s for _, each_s in lines):
        return []
    return [(line, texts[line][:_MOST_TEXT]) for line, _ in waiting]


def _slowest_line(seen: Seen) -> str:
    return seen.facts.python_lines[0][0] if seen.facts.python_lines else ""


def _place(text: str) -> str:
    """Return ``train.py:20`` of ``numpy_function in train.py:20``; empty where there is none."""
    return text.rpartition(_PLACE)[2] if _PLACE in text else ""


HOST_RULES = (
    run_eagerly, uncompiled_layer, loss_each_step, numpy_in_step, python_loop, few_threads,
    bound_to_few, container_limit, python_thread, busy_interpreter, busy_cpus,
)  # fmt: skip
