"""Profiles with planted facts, written byte by byte as TensorFlow's profiler lays them out.

No package that can be installed carries a trace of a real GPU (looked at: tensorflow 2.21.0, jaxlib
0.10.2, xprof 2.24.2), so the smallest faithful ones are made here: fields and their numbers from
``xplane.proto``, names of planes and facts from ``xplane_schema.h``, names of streams
(``Stream #13(Compute,MemcpyD2D,Memset)``) and the text of a copy from ``cupti_collector.cc``.
``test_profile_planes`` reads them with TensorFlow's own classes, too.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

REAL = Path(__file__).parents[1] / "data" / "profiles" / "keras_fit_stalled.xplane.pb.gz"
COMPUTE, COPIES = "Stream #13(Compute,MemcpyD2D,Memset)", "Stream #14(MemcpyH2D)"
EXCHANGE = "Stream #20(Compute)"
GEMM = "ampere_sgemm_128x64_nn"
CONV = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
EXCHANGE_US = 3000.0


@dataclass(frozen=True, kw_only=True)
class Made:
    """One event; times in microseconds since the profile began."""

    name: str
    at_us: float
    us: float
    facts: Mapping[str, int | str] = field(default_factory=dict)


Planes = dict[str, dict[str, list[Made]]]
"""Events by plane and line."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Steps of a training on one GPU: kernels one after the other, then whatever is planted."""

    steps: int = 12
    kernels: int = 10
    kernel_us: float = 1000.0
    gap_us: float = 5.0
    """After each kernel."""
    input_us: float = 0.0
    """For which the host waits for data before the first kernel of a step."""
    pause_us: float = 0.0
    """For which the host does something unknown there."""
    copy_us: float = 0.0
    """Of a copy to the GPU there."""
    exchange: str = ""
    """``hidden``: an all-reduce beside the first kernels; ``exposed``: after the last one."""
    markers: bool = True
    host: bool = True
    ahead_us: float = 0.0
    """By which the host starts kernels earlier than they run."""
    names: tuple[str, ...] = (GEMM,)
    """Of kernels, in turn."""

    @property
    def step_us(self) -> float:
        """By hand: kernels with their gaps, and what comes before and after."""
        exposed = EXCHANGE_US + self.gap_us if self.exchange == "exposed" else 0.0
        own = self.kernels * (self.kernel_us + self.gap_us)
        return own + self.input_us + self.pause_us + self.copy_us + exposed


def planes_of(training: Training) -> Planes:
    """The planes of a training."""
    gpu: dict[str, list[Made]] = {COMPUTE: [], COPIES: [], EXCHANGE: []}
    host: dict[str, list[Made]] = {"python": [], "tf_data_iterator_get_next/1": []}
    for step in range(training.steps):
        at = 1000.0 + step * training.step_us
        if training.markers:
            host["python"].append(_marker(training, step, at))
        if training.input_us:
            waiting = Made(name="IteratorGetNextOp::DoCompute", at_us=at, us=training.input_us)
            host["tf_data_iterator_get_next/1"].append(waiting)
        at += training.input_us + training.pause_us
        if training.copy_us:
            details = "kind_src:pageable kind_dst:device size:4096 dest:0 async:1"
            facts = {"memcpy_details": details}
            gpu[COPIES].append(Made(name="MemcpyH2D", at_us=at, us=training.copy_us, facts=facts))
        at += training.copy_us
        if training.exchange == "hidden":
            gpu[EXCHANGE].append(Made(name=NCCL, at_us=at, us=EXCHANGE_US))
        for place in range(training.kernels):
            facts_of_both = {"correlation_id": 1 + step * training.kernels + place}
            name = training.names[place % len(training.names)]
            kernel = Made(name=name, at_us=at, us=training.kernel_us, facts=facts_of_both)
            start = at - training.ahead_us - 0.5
            launch = Made(name="cuLaunchKernel", at_us=start, us=0.4, facts=facts_of_both)
            gpu[COMPUTE].append(kernel)
            host["python"].append(launch)
            at += training.kernel_us + training.gap_us
        if training.exchange == "exposed":
            gpu[EXCHANGE].append(Made(name=NCCL, at_us=at, us=EXCHANGE_US))
    return {"/device:GPU:0": gpu, **({"/host:CPU": host} if training.host else {})}


def _marker(training: Training, step: int, at_us: float) -> Made:
    """What ``tf.profiler.experimental.Trace("train", step_num=step, _r=1)`` leaves."""
    begin = at_us - training.ahead_us - 1
    return Made(
        name="train", at_us=begin, us=training.step_us - 1, facts={"step_num": step, "_r": 1}
    )


def space(planes: Planes, said: Mapping[str, Mapping[str, int]] | None = None) -> bytes:
    """The bytes of an ``xplane.pb``; ``said``: numbers of planes themselves."""
    made = ((name, lines, (said or {}).get(name, {})) for name, lines in planes.items())
    return b"".join(message(1, _plane(*each)) for each in made)


def json_trace(planes: Planes) -> bytes:
    """The bytes of a ``*.trace.json.gz`` of the same."""
    events: list[dict[str, object]] = []
    for pid, (plane, lines) in enumerate(planes.items(), 1):
        events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": plane}})
        for tid, (line, made) in enumerate(lines.items(), 1):
            head = {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name"}
            events.append({**head, "args": {"name": line}})
            for one in made:
                facts = {name: str(value) for name, value in one.facts.items()}
                where = {"ph": "X", "pid": pid, "tid": tid, "ts": one.at_us, "dur": one.us}
                events.append({**where, "name": one.name, "args": facts})
    text = json.dumps({"displayTimeUnit": "ns", "traceEvents": events})
    return gzip.compress(text.encode(), 1, mtime=0)


def _plane(name: str, lines: dict[str, list[Made]], said: Mapping[str, int]) -> bytes:
    names = _numbered(one.name for made in lines.values() for one in made)
    of_events = (fact for made in lines.values() for one in made for fact in one.facts)
    facts = _numbered([*of_events, *said])
    body = message(2, name.encode())
    for each, value in said.items():
        body += message(6, number(1, facts[each]) + number(3, value))
    for place, (line, made) in enumerate(lines.items(), 1):
        body += message(3, _line(place, line, made, names, facts))
    for field_number, table in ((4, names), (5, facts)):
        for each, place in table.items():
            entry = number(1, place) + message(2, each.encode())
            body += message(field_number, number(1, place) + message(2, entry))
    return body


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(dict.fromkeys(names), 1)}


def _line(
    place: int, name: str, made: list[Made], names: dict[str, int], facts: dict[str, int]
) -> bytes:
    began_ns = 1_700_000_000_000_000_000
    body = [number(1, place) + message(2, name.encode()) + number(3, began_ns)]
    for one in made:
        event = number(1, names[one.name])
        event += number(2, round(one.at_us * 1e6)) + number(3, round(one.us * 1e6))
        for fact, value in one.facts.items():
            told = message(5, value.encode()) if isinstance(value, str) else number(4, value)
            event += message(4, number(1, facts[fact]) + told)
        body.append(message(4, event))
    return b"".join(body)


def number(field_number: int, value: int) -> bytes:
    """A field that is a number."""
    return _varint(field_number << 3) + _varint(value)


def message(field_number: int, body: bytes) -> bytes:
    """A field of any length."""
    return _varint(field_number << 3 | 2) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    taken = []
    while value > 0x7F:
        taken.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*taken, value])
