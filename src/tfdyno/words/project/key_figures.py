"""What each kind of document stands for: its numbers, the most telling one first."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tfdyno.core.base.units import significant
from tfdyno.core.measure.load import LOAD_FORMAT
from tfdyno.core.project.report import KeyFigure, StepKind
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfdyno.core.project.report import Basis

    Raw = Mapping[str, Any]

_BY_COMMAND: dict[str, StepKind] = {
    "advise": "advise", "estimate": "estimate", "memory": "memory", "data": "data",
    "train": "train", "launch": "train", "tune": "tune", "bench": "bench",
    "diagnose": "diagnose", "export": "export", "models": "models", "edge": "edge", "serve": "load",
}  # fmt: skip
NOT_KEPT = "not_kept"
"""Name of a gain that was measured of a change that was not kept."""
_RANGE_RATIO = 0.9
"""What an estimate's range holds in so many cases."""
_SURE_RATIO = 0.95
"""The confidence of the intervals of bench, export and load tests."""
_EDGE_SURE_RATIO = 0.96
_HERE = frozenset(("localhost", "127.0.0.1", "::1"))


def kind_of(command: str, document: Raw) -> StepKind:
    """Tell a document's kind, by itself where it says so, else by the command that printed it."""
    form = str(document.get("format", ""))
    if form == LOAD_FORMAT:
        return "load"
    if form.startswith("tfdyno bench"):
        return "bench"
    words = command.split()
    if words[:1] == ["bench"]:
        return "load" if "--serve" in words else "bench"
    kind = _BY_COMMAND.get(words[0] if words else "", "other")
    is_size = kind == "advise" and ("goal" in document or "serve" in words)
    return "size" if is_size else kind


def key_figures(kind: StepKind, document: Raw) -> tuple[KeyFigure, ...]:
    """Return a document's figures; one whose keys are missing or no numbers is left out."""
    read = _READERS.get(kind)
    found = [one for one in read(document) if one] if read and document else []
    return tuple(sorted(found, key=lambda one: one.name == NOT_KEPT))  # no step stands for that


def number(raw: object, *path: str | int) -> float | None:
    """Return the finite number at a path of keys and places; None: there is none."""
    for key in path:
        try:
            raw = raw[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    is_number = isinstance(raw, int | float) and not isinstance(raw, bool) and math.isfinite(raw)
    return float(raw) if is_number else None  # type: ignore[arg-type]


def each(raw: Raw, name: str) -> Iterator[Raw]:
    """Yield the entries of a list that are objects."""
    found = raw.get(name)
    if isinstance(found, list | tuple):
        yield from (one for one in found if isinstance(one, dict))


def part(raw: Raw, name: str) -> Raw:
    """Return the object under a name; empty where there is none."""
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def picked(document: Raw) -> Raw:
    """Return what ``advise`` recommends: balanced, else the cheapest; empty: none is feasible."""
    picks = part(document, "picks")
    return next((p for n in ("balanced", "cheapest", "fastest") if (p := part(picks, n))), {})


def machine(document: Raw) -> str:
    """Write host, device and CPUs of a measurement: ``desk, 2 x L4, 16 CPUs``."""
    environment = part(document, "environment")
    cards = Counter(str(one.get("name", "")) for one in each(environment, "cards"))
    several = " + ".join(f"{n} x {name}" if n > 1 else name for name, n in cards.items())
    device = several if environment.get("device") == "gpu" else environment.get("cpu", "")
    cpus = number(environment, "cpu_count")
    found = (environment.get("host", ""), device, plural(round(cpus), "CPU") if cpus else "")
    return ", ".join(str(one) for one in found if one)


def _figure(
    name: str, title: str, value: float | None, unit: str, *, bounds: object = None,
    sure_ratio: float = 0.0, **more: Any,
) -> KeyFigure | None:  # fmt: skip
    """Return a figure; ``bounds`` are a list of two, or an object with ``low`` and ``high``."""
    if value is None:
        return None
    keys: tuple[str | int, str | int] = ("low", "high") if isinstance(bounds, dict) else (0, 1)
    low, high = (number(bounds, key) for key in keys)
    is_known = low is not None and high is not None and low <= value <= high
    return KeyFigure(
        name=name, title=title, value=value, unit=unit,
        low=low if is_known else None, high=high if is_known else None,
        confidence_ratio=sure_ratio if is_known else 0.0, **more,
    )  # fmt: skip


def _advise(document: Raw) -> Iterator[KeyFigure | None]:
    pick = picked(document)
    of, basis = str(pick.get("gpu", "")), "estimated"
    yield _figure("cost", "Cost of the training", number(pick, "cost_usd"), "usd", of=of,
                  bounds=pick.get("cost_usd_range"), sure_ratio=_RANGE_RATIO, basis=basis,
                  better="less")  # fmt: skip
    yield _figure("hours", "Time of the training", number(pick, "hours"), "h", of=of,
                  bounds=pick.get("hours_range"), sure_ratio=_RANGE_RATIO, basis=basis,
                  better="less")  # fmt: skip


def _size(document: Raw) -> Iterator[KeyFigure | None]:
    pick = picked(document)
    of, basis = str(pick.get("gpu", "")), "estimated"
    yield _figure("usd_per_million", "Cost of a million requests", number(pick, "usd_per_million"),
                  "usd", of=of, basis=basis, better="less")  # fmt: skip
    yield _figure("usd_per_month", "Cost of a month", number(pick, "cost_usd"), "usd", of=of,
                  basis=basis, better="less")  # fmt: skip
    yield _figure("p99", "p99 at the peak", number(pick, "p99_s"), "s", of=of, basis=basis,
                  better="less")  # fmt: skip


def _estimate(document: Raw) -> Iterator[KeyFigure | None]:
    for one in each(document, "estimates"):
        of = str(one.get("gpu", ""))
        for name, title, unit in (
            ("step", "Step", "s"), ("device_memory", "Memory of the GPU", "bytes")
        ):  # fmt: skip
            bounds = part(one, "step_s" if name == "step" else "device_memory_bytes")
            yield _figure(name, title, number(bounds, "best"), unit, bounds=bounds, of=of,
                          sure_ratio=_RANGE_RATIO, basis="estimated", better="less")  # fmt: skip


def _memory(document: Raw) -> Iterator[KeyFigure | None]:
    for one in each(document, "memory"):
        for key, title in (
            ("device_memory_bytes", "Memory of the GPU"),
            ("peak_memory_bytes", "Of it, of the program itself"),
        ):
            bounds = part(one, key)
            yield _figure(key, title, number(bounds, "best"), "bytes", bounds=bounds,
                          of=str(one.get("gpu", "")), sure_ratio=_RANGE_RATIO, basis="estimated",
                          better="less")  # fmt: skip


def _data(document: Raw) -> Iterator[KeyFigure | None]:
    bounds = part(document, "samples_per_s")
    yield _figure("input", "Input pipeline", number(bounds, "best"), "samples/s", bounds=bounds,
                  sure_ratio=_RANGE_RATIO, better="more", place=machine(document))  # fmt: skip


def _train(document: Raw) -> Iterator[KeyFigure | None]:
    history = part(document, "history")
    for name in sorted(history, key=_metric_order):
        is_loss = "loss" in name
        title = name.replace("_", " ")
        title = f"Validation {title[4:]}" if name.startswith("val_") else title.capitalize()
        yield _figure(name, title, number(history, name, -1), "ratio" if "acc" in name else "",
                      better="less" if is_loss else "more" if "acc" in name else "",
                      place=machine(document))  # fmt: skip


def _metric_order(name: str) -> tuple[bool, bool, bool, str]:
    """Order the validation's first, accuracies before losses, the learning rate last."""
    return name in {"learning_rate", "lr"}, not name.startswith("val_"), "loss" in name, name


def _bench(document: Raw) -> Iterator[KeyFigure | None]:
    median_s, step_bounds = number(document, "median_s"), document.get("interval_s")
    rate = number(document, "throughput_per_s")
    low, high = number(step_bounds, 0), number(step_bounds, 1)
    bounds = None
    if median_s and rate and low and high:
        bounds = [rate * median_s / high, rate * median_s / low]
    place = machine(document)
    more: dict[str, Any] = {"sure_ratio": _SURE_RATIO, "place": place}
    yield _figure("throughput", "Throughput", rate, "samples/s", bounds=_around(bounds, rate),
                  better="more", **more)  # fmt: skip
    yield _figure("step", "Step", median_s, "s", bounds=step_bounds, better="less", **more)
    yield _figure("peak_memory", "Memory at most", number(document, "peak_memory_bytes"), "bytes",
                  better="less", place=place)  # fmt: skip
    against = part(document, "comparison")
    # No gain where it falls: A of a later run may be what B was.
    yield _figure("against", "B over A", number(against, "ratio") or None, "times",
                  bounds=against.get("interval"), place=place,
                  sure_ratio=number(against, "confidence_ratio") or 0.0)  # fmt: skip


def _around(bounds: list[float] | None, value: float | None) -> list[float] | None:
    """Widen bounds to hold the value, which is rounded otherwise than they are."""
    if bounds is None or value is None:
        return None
    return [min(bounds[0], value), max(bounds[1], value)]


def _diagnose(document: Raw) -> Iterator[KeyFigure | None]:
    place = machine(document)
    for proof in each(document, "proofs"):
        yield _proof(proof, "Gain of the fix", place, of=str(proof.get("cause", "")))
    yield _figure("step", "Step", number(document, "step_s"), "s", better="less", place=place)
    yield _figure("throughput", "Throughput", number(document, "samples_per_s") or None,
                  "samples/s", better="more", place=place)  # fmt: skip


def _proof(proof: Raw, title: str, place: str, *, of: str = "") -> KeyFigure | None:
    """Return a change against the run as it was.

    A run that has adopted it starts from there and finds no further gain. That is no loss: neither
    more nor less of it is better.
    """
    kept = bool(proof.get("kept"))
    name, title = ("proof", title) if kept else (NOT_KEPT, "Measured and not kept")
    return _figure(name, title, number(proof, "ratio") or None, "times", of=of,
                   bounds=proof.get("interval"), place=place,
                   sure_ratio=number(proof, "confidence_ratio") or 0.0)  # fmt: skip


def _tune(document: Raw) -> Iterator[KeyFigure | None]:
    best, place = part(document, "best"), str(document.get("device_name") or "")
    yield _proof(part(document, "proof"), "Gain of the tuning", place)
    yield _figure("throughput", "Throughput of the best", number(best, "samples_per_s"),
                  "samples/s", better="more", place=place, bounds=best.get("interval_per_s"),
                  sure_ratio=number(document, "confidence_ratio") or 0.0)  # fmt: skip


def _export(document: Raw) -> Iterator[KeyFigure | None]:
    for one in each(document, "formats"):
        of, place = str(one.get("format", "")), machine(document)
        yield _figure("accuracy", "Accuracy after", number(one, "accuracy_after"), "ratio", of=of,
                      better="more")  # fmt: skip
        yield _figure("accuracy_drop", "Accuracy lost", number(one, "accuracy_drop"), "ratio",
                      of=of)  # fmt: skip
        call = next(each(one, "latency"), {})
        size = number(call, "batch_size") or 0
        yield _figure(f"call_{size:g}", f"Call, batch {size:g}",
                      number(call, "exported_s", "best"), "s", bounds=call.get("exported_s"),
                      sure_ratio=_SURE_RATIO, better="less", of=of, place=place)  # fmt: skip
        ratio = part(call, "speedup_ratio")
        yield _figure("speedup", "Times as fast as the model", number(ratio, "best"), "times",
                      bounds=ratio, sure_ratio=_SURE_RATIO, of=of, place=place)  # fmt: skip
        yield _figure("size", "Size", number(one, "size_bytes"), "bytes", better="less", of=of,
                      basis="exact")  # fmt: skip


def _models(document: Raw) -> Iterator[KeyFigure | None]:
    basis: Basis = "exact"
    yield _figure("size", "Size", number(document, "size_bytes"), "bytes", better="less",
                  basis=basis)  # fmt: skip


def _edge(document: Raw) -> Iterator[KeyFigure | None]:
    devices = list(each(document, "devices"))
    fits = sum(bool(one.get("fits")) for one in devices)
    yield _figure("fits", f"Devices of {len(devices)} that it fits on", float(fits), "",
                  basis="estimated", better="more")  # fmt: skip
    for one in each(document, "timings"):
        threads = number(one, "threads") or 0
        name = "1 thread" if threads == 1 else f"{threads:g} threads"
        yield _figure("call", "Call on this CPU", number(one, "median_s"), "s", of=name,
                      bounds=one.get("interval_s"), sure_ratio=_EDGE_SURE_RATIO, better="less",
                      place=str(document.get("cpu", "")))  # fmt: skip


def _load(document: Raw) -> Iterator[KeyFigure | None]:
    if document.get("verdict") == "failed":
        return
    place, run = _served(document), part(_main_stage(document), "run")
    rows = plural(round(number(run, "rows_per_request") or 1), "row") + " a request"
    limit_s = number(document, "p99_limit_s") or 0.0
    yield _figure("knee", "Requests with p99 within the promise",
                  number(document, "knee_rate_per_s"), "requests/s", better="more",
                  place=place, terms=f"p99 within {1e3 * limit_s:g} ms, {rows}")  # fmt: skip
    terms = f"{_load_words(part(run, 'plan'))}, {rows}"
    yield _figure("accepted", "Requests answered", number(document, "accepted_per_s"),
                  "requests/s", better="more", place=place, terms=terms)  # fmt: skip
    for name in ("p99", "p50"):
        bounds = part(document, f"{name}_s")
        yield _figure(name, name, number(bounds, "best"), "s", bounds=bounds, better="less",
                      sure_ratio=_SURE_RATIO, place=place, terms=terms)  # fmt: skip


def _served(document: Raw) -> str:
    """Say where the server was, as far as it is known: its machine is seldom told."""
    server, asker = part(document, "server"), str(document.get("machine", ""))
    try:
        host = urlsplit(str(document.get("url", ""))).hostname or ""
    except ValueError:
        host = ""
    is_here = bool(server.get("processes")) or host in _HERE
    found = (asker if is_here else host, server.get("platform"),
             "" if is_here or not asker else f"asked from {asker}")  # fmt: skip
    return ", ".join(str(one) for one in found if one)


def _main_stage(document: Raw) -> Raw:
    """Return the stretch that the figures are of, as ``words.bench.load.main_stage`` chooses it."""
    stages, knee = list(each(document, "stages")), number(document, "knee_rate_per_s")
    held = [one for one in stages if one.get("holds")]
    at_knee = [one for one in held if number(one, "run", "plan", "rate_per_s") == knee]
    if knee is not None and at_knee:
        return at_knee[-1]
    return stages[0 if number(document, "p99_limit_s") else -1] if stages else {}


def _load_words(plan: Raw) -> str:
    """Write ``64 clients``, ``800 requests/s offered``."""
    rate, clients = number(plan, "rate_per_s"), number(plan, "clients")
    if plan.get("kind") == "open" and rate:
        return f"{significant(rate)} requests/s offered"
    return plural(round(clients), "client") if clients else "an unknown load"


_READERS: dict[StepKind, Callable[[Raw], Iterator[KeyFigure | None]]] = {
    "advise": _advise, "size": _size, "estimate": _estimate, "memory": _memory, "data": _data,
    "train": _train, "tune": _tune, "bench": _bench, "diagnose": _diagnose, "export": _export,
    "models": _models, "edge": _edge, "load": _load,
}  # fmt: skip
