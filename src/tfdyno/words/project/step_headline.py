"""The answer of a step in one line, from the document that its command printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.units import format_bytes
from tfdyno.words.base.amounts import listed, plural
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_CHARACTERS = 160


def step_headline(command: str, document: object) -> str:
    """Return one line, or empty where the document says nothing that fits one.

    Args:
        command: As in the project's file.
        document: What it printed with ``--json``.
    """
    if not isinstance(document, dict):
        return ""
    try:
        text = _KNOWN.get(command, _own)(document)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        # Of another version, or a script's.
        text = _own(document)
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"


def _own(document: Mapping[str, Any]) -> str:
    """Return what a document calls its headline, or summary."""
    found = (document.get(name) for name in ("headline", "summary", "reason"))
    return next((one for one in found if isinstance(one, str)), "")


def _train(document: Mapping[str, Any]) -> str:
    last = {name: values[-1] for name, values in document["history"].items() if values}
    # Losses last, and what was seen of the validation first: that is what a model is chosen by.
    names = sorted(last, key=lambda name: ("loss" in name, not name.startswith("val_"), name))
    values = [f"{name} {last[name]:.4g}" for name in names[:3] if last[name] is not None]
    return f"{listed(values)} after {plural(document['steps'], 'step')}" if values else ""


def _bench(document: Mapping[str, Any]) -> str:
    step = f"{seconds_words(document['median_s'])} per step"
    rate = document["throughput_per_s"]
    compared = document.get("comparison")
    verdict = f"; against the other setting: {compared['verdict']}" if compared else ""
    return f"{step}, {rate:,.0f} samples/s{verdict}"


def _diagnose(document: Mapping[str, Any]) -> str:
    return str(document["primary"]["summary"])


def _convert(document: Mapping[str, Any]) -> str:
    shards = plural(document["shards"], "file")
    return f"{plural(document['records'], 'record')} in {shards}, {format_bytes(document['bytes'])}"


def _export(document: Mapping[str, Any]) -> str:
    return listed([_format(one) for one in document["formats"]])


def _format(one: Mapping[str, Any]) -> str:
    if not one["kept"]:
        return f"{one['format']} is not kept ({'; '.join(one['failures'])})"
    accuracy = one["accuracy_after"]
    told = "" if accuracy is None else f", accuracy {accuracy:.4g}"
    return f"{one['format']} ({format_bytes(one['size_bytes'])}{told})"


def _added(document: Mapping[str, Any]) -> str:
    return f"{document['id']}{'' if document.get('new', True) else ', which was there already'}"


def _load(document: Mapping[str, Any]) -> str:
    if document["verdict"] != "good":
        return "; ".join(map(str, document["faults"])) or "the load test failed"
    rate, p99_s = document["accepted_per_s"], document["p99_s"]["best"]
    return f"{rate:,.0f} answers/s, 99 of 100 within {seconds_words(p99_s)}"


def _estimate(document: Mapping[str, Any]) -> str:
    one = document["estimates"][0]
    return f"{one['gpu']}: {seconds_words(one['step_s']['best'])} per step"


_KNOWN: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "train": _train,
    "launch": _train,
    "bench": _bench,
    "diagnose": _diagnose,
    "data convert": _convert,
    "export": _export,
    "models add": _added,
    "serve": _load,
    "bench --serve": _load,
    "estimate": _estimate,
}
