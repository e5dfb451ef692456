"""Work of the pipeline that takes too long: Python, decoding, one element after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.bottleneck.draft import Draft, duration, evidence
from tfdyno.rules.bottleneck.gains import amdahl, with_less_work, without_wait
from tfdyno.rules.bottleneck.input_stage import Timed, found, heavy, timed
from tfdyno.rules.bottleneck.seen import draws, reads, runs_python, samples_of_step, waits_itself
from tfdyno.rules.bottleneck.tables import cause, limits, matching
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.measure.bottleneck import Gain
    from tfdyno.core.measure.step_facts import InputFacts
    from tfdyno.rules.bottleneck.seen import Seen


def sequential_map(seen: Seen) -> Iterator[Draft]:
    """Find a ``map`` that works on one element at a time while CPUs are idle."""
    given = seen.input
    if given is None:
        return
    slots = limits()["waiting_calls"] if waits_itself(seen, given) else seen.cpus
    for one in heavy(seen, given):
        stage = one.stage
        is_bound = runs_python(stage) and not waits_itself(seen, given)
        if stage.kind != "map" or stage.parallel_calls not in (0, 1) or is_bound or slots < 2:
            continue
        batch_s = seen.split.batch_s - one.wall_s * (1.0 - 1.0 / slots)
        settings = dict(cause("input.sequential_map").settings)
        if not given.prefetches:
            settings["input.prefetch"] = "-1"
        if draws(stage):  # one element at a time is what lets a seed repeat its random numbers
            settings["input.deterministic"] = "false"
        gain = without_wait(seen, batch_s, ahead=True)
        told = evidence(
            "{stage} works on 1 element at a time", "stages of the pipeline", stage=stage.title
        )
        yield found(seen, "input.sequential_map", gain, told, one=one, settings=settings,
                    values={"draws": "yes" if draws(stage) else "no"})  # fmt: skip
        return


def python_generator(seen: Seen) -> Iterator[Draft]:
    """Find elements that come from Python one by one."""
    given = seen.input
    if given is None:
        return
    if given.kind == "pydataset":
        workers, name = str(given.workers or ""), "input.slow_pydataset"
        told = [evidence("workers: {workers}", "the PyDataset", workers=workers)] if workers else []
        yield found(seen, name, _less(seen, given, None, name), *told, values={"workers": workers})
        return
    source = next((one for one in heavy(seen, given) if one.stage.kind == "from_generator"), None)
    if source or (given.kind == "generator" and not given.stages):
        gain = _less(seen, given, source, "input.python_generator")
        yield found(seen, "input.python_generator", gain, one=source)


def python_in_map(seen: Seen) -> Iterator[Draft]:
    """Find ``py_function`` or ``numpy_function`` in a stage: the interpreter runs one at a time."""
    given = seen.input
    for one in heavy(seen, given) if given else ():
        if one.stage.kind != "from_generator" and runs_python(one.stage) and given:
            names = ", ".join(matching("python", one.stage.operations)) or say("Python code")
            told = evidence(
                "{stage} runs {names}",
                "operations of the stage",
                stage=one.stage.title,
                names=names,
            )
            gain = _less(seen, given, one, "input.python_in_map")
            yield found(seen, "input.python_in_map", gain, told, one=one)
            return


def slow_decode(seen: Seen) -> Iterator[Draft]:
    """Find pictures or sound that are decoded anew in each epoch."""
    given = seen.input
    for one in heavy(seen, given) if given else ():
        names = matching("decode", one.stage.operations)
        if names and given:
            told = evidence(
                "{stage} runs {names}",
                "operations of the stage",
                stage=one.stage.title,
                names=", ".join(names),
            )
            gain = _less(seen, given, one, "input.slow_decode")
            yield found(seen, "input.slow_decode", gain, told, one=one)
            return


def map_before_batch(seen: Seen) -> Iterator[Draft]:
    """Find a cheap function called once an element, where one call could do a whole batch."""
    given, size = seen.input, samples_of_step(seen)
    if given is None or size < 2:
        return
    batch = next((t.place for t in timed(seen, given) if t.stage.kind == "batch"), -1)
    for one in heavy(seen, given):
        stage = one.stage
        each_s = (stage.own_s or one.wall_s) / size
        is_plain = not (runs_python(stage) or reads(stage) or draws(stage))
        is_cheap = 0.0 < each_s <= limits()["cheap_element_s"]
        if stage.kind != "map" or one.place > batch or not is_plain or not is_cheap:
            continue
        if matching("decode", stage.operations):
            continue
        told = evidence(
            "{stage} takes {each} for each of {size} elements: most of it is the call",
            "stages of the pipeline",
            stage=stage.title,
            each=duration(each_s),
            size=size,
        )
        gain = _less(seen, given, one, "input.batch_after_map")
        yield found(seen, "input.batch_after_map", gain, told, one=one)
        return


def shuffle_cost(seen: Seen) -> Iterator[Draft]:
    """Find a shuffle that moves large elements, where their names or numbers would do."""
    given = seen.input
    for one in heavy(seen, given) if given else ():
        if one.stage.kind == "shuffle" and given:
            told = evidence(
                "its buffer holds {count:,} elements",
                "stages of the pipeline",
                count=one.stage.buffer_size,
            )
            gain = _less(seen, given, one, "input.shuffle_cost")
            yield found(seen, "input.shuffle_cost", gain, told, one=one)
            return


def slow_pipeline(seen: Seen) -> Iterator[Draft]:
    """Find a step that waits where no other rule of the input says why."""
    given = seen.input
    waits_s = seen.split.parts_s["input"]
    if not seen.counts(waits_s):
        return
    slowest = max(heavy(seen, given), key=lambda t: t.wall_s, default=None) if given else None
    gain = amdahl(seen.step_s, waits_s, cause("input.slow_pipeline").removes)
    yield found(seen, "input.slow_pipeline", gain, one=slowest)


def _less(seen: Seen, given: InputFacts, one: Timed | None, name: str) -> Gain:
    """Return the gain of taking a cause's shares away from a stage, or from the whole pipeline."""
    part_s = one.wall_s if one else seen.split.batch_s
    return with_less_work(seen, part_s, cause(name).removes, ahead=given.prefetches)


INPUT_WORK_RULES = (
    sequential_map, python_generator, python_in_map, slow_decode, map_before_batch, shuffle_cost,
)  # fmt: skip
