"""A conversion as terminal text, and as JSON with the documented keys."""

from __future__ import annotations

from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.units import format_bytes, significant
from tfdyno.core.deploy.dataset import READER, Converted, Dataset, ReadSpeed, Verified
from tfdyno.view.base.documents import fields_of
from tfdyno.view.base.text import WIDTH, paint, pairs, wrapped
from tfdyno.words.base.amounts import capital, listed, plural
from tfdyno.words.bench.comparison import interval_words, ratio_words, verdict_words
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import Comparison

_SHOWN = 5
_STYLES = {"faster": "green", "slower": "yellow"}
SIDES = ("the original", "the converted data")


def convert_document(told: Converted) -> dict[str, Any]:
    """Write ``{"output", "records", "shards", "kept_shards", "skipped", "speed", …}``."""
    dataset = told.dataset
    return {
        "output": str(told.folder),
        "records": dataset.records,
        "classes": list(dataset.classes),
        "features": to_builtins(dataset.features),
        "shards": len(dataset.shards),
        "kept_shards": told.kept_shards,
        "bytes": dataset.size_bytes,
        "source": to_builtins(dataset.source),
        "settings": to_builtins(dataset.settings),
        "seconds": told.seconds_s,
        "skipped": to_builtins(dataset.skipped),
        "reader": READER,
        "speed": _speed_document(told.speed) if told.speed else None,
        "not_measured": told.not_measured,
        "notes": list(told.notes),
    }


def _speed_document(speed: ReadSpeed) -> dict[str, Any]:
    found = speed.comparison
    return {
        "verdict": found.verdict,
        "ratio": found.ratio,
        "interval": list(found.interval),
        "confidence": found.confidence_ratio,
        **fields_of(
            speed, "before_per_s", "after_per_s", "before_pipeline", "batch_size", "image_size",
            "whole_epochs",
        ),
    }  # fmt: skip


def convert_text(told: Converted, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the whole answer.

    Args:
        told: What came out.
        width: Columns of the screen.
        colour: Whether to print colours; they only repeat what words say.
    """
    blocks = [
        paint(wrapped(_headline(told), width=width), "bold", colour=colour),
        pairs(_facts(told), width=width),
        _speed(told, width, colour),
        _notes(told, width),
        pairs([("read it", f"{told.folder}/{READER}: read(batch_size=32)")], width=width),
    ]
    return "\n\n".join(block for block in blocks if block)


def verify_text(folder: str, found: Verified, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return what came out of reading a data set again."""
    whole = plural(found.shards, "shard")
    told = f"{folder}: {whole}, {plural(found.records, 'record')}, {format_bytes(found.size_bytes)}"
    if found.damaged:
        head = f"{told}; {len(found.damaged)} damaged"
        rows = [(one.file, one.why) for one in found.damaged]
        remedy = "The command that converted it writes them again, and no others."
        blocks = [paint(head, "red", colour=colour), pairs(rows, width=width), remedy]
    else:
        blocks = [paint(f"{told}, all as they were written", "green", colour=colour)]
    if found.source_changed is not None:
        blocks.append("The source has changed since." if found.source_changed
                      else "The source has not changed since.")  # fmt: skip
    return "\n".join(blocks)


def _headline(told: Converted) -> str:
    dataset = told.dataset
    if dataset.settings.kind == "images":
        classes = plural(len(dataset.classes), "class", "classes")
        what = f"{plural(dataset.records, 'image')} of {classes}"
    else:
        columns = plural(len(dataset.features), "column")
        what = f"{plural(dataset.records, 'row')} of {columns}"
    return f"{what} in {told.folder}"


def _facts(told: Converted) -> list[tuple[str, str]]:
    dataset = told.dataset
    before, after = dataset.source.size_bytes, dataset.size_bytes
    shards = plural(len(dataset.shards), "shard")
    size = f"{shards}, {format_bytes(after)} ({format_bytes(before)} before)"
    if not told.seconds_s:
        work = "all shards were there, and are as they were written"
    else:
        new = len(dataset.shards) - told.kept_shards
        work = f"{plural(new, 'shard')} in {seconds_words(told.seconds_s)}"
        work += f", {told.kept_shards} kept from before" if told.kept_shards else ""
    return [
        ("size", size),
        ("written", work),
        ("order", _order(dataset)),
        ("holds", _held(dataset)),
    ]


def _order(dataset: Dataset) -> str:
    seed = dataset.settings.shuffle_seed
    return "that of the source" if seed is None else f"shuffled with seed {seed}"


def _held(dataset: Dataset) -> str:
    roles = {one.role: one for one in dataset.features}
    if "pixels" in roles:
        height, width, _ = roles["pixels"].shape
        return f"images as {height} x {width} pixels of 8-bit RGB"
    if "image" in roles:
        return "images as they are encoded"
    kinds: list[str] = [one.dtype for one in dataset.features if one.role == "column"]
    counts = [(kinds.count(kind), name) for kind, name in (
        ("int64", "int64"), ("float32", "float32"), ("string", "text"))]  # fmt: skip
    columns = listed([f"{count:,} {name}" for count, name in counts if count] or ["none"])
    return f"features: {columns}{_label(dataset)}"


def _label(dataset: Dataset) -> str:
    if not dataset.settings.label:
        return ""
    name = dataset.settings.label
    if dataset.classes:
        return f"; label '{name}' as {plural(len(dataset.classes), 'class', 'classes')}"
    dtype = next(one.dtype for one in dataset.features if one.role == "label")
    return f"; label '{name}' as {dtype}"


def _speed(told: Converted, width: int, colour: bool) -> str:
    speed = told.speed
    if speed is None:
        return wrapped(f"Not measured: {told.not_measured}.", width=width)
    unit = "images" if told.dataset.settings.kind == "images" else "rows"
    size = f" at {speed.image_size[0]} x {speed.image_size[1]}" if speed.image_size else ""
    rows = [
        ("before", f"{_rate(speed.before_per_s, unit)}  {speed.before_pipeline}"),
        ("after", f"{_rate(speed.after_per_s, unit)}  {READER}"),
    ]
    verdict = _verdict(speed.comparison)
    turns = "whole epochs" if speed.whole_epochs else "a second in the middle of an epoch"
    how = (
        f"{plural(len(speed.before_per_s), 'turn')} of each, one after the other, {turns}; batch "
        f"{speed.batch_size}{size}, shuffled. Both were read from the memory in which this machine "
        "keeps files, as far as they fit: reading from a slow disk was not measured."
    )
    style = _STYLES.get(speed.comparison.verdict, "bold")
    lines = [
        paint(line, style, colour=colour) for line in wrapped(verdict, width=width).split("\n")
    ]
    return "\n".join([*lines, pairs(rows, width=width), wrapped(how, width=width)])


def _verdict(found: Comparison) -> str:
    if found.verdict == "no_difference":
        bounds = f"{interval_words(found.interval)}, {found.confidence_ratio:.0%}"
        told = f"{ratio_words(found.ratio)} as fast as {SIDES[0]} ({bounds.replace('%', ' %')})"
        return f"No difference is proven: {SIDES[1]} is {told}."
    told = verdict_words(*SIDES, found)
    return capital(told)


def _rate(per_s: Sequence[float], unit: str) -> str:
    """Return the mean whose ratio is the one that is told."""
    return f"{significant(geometric_mean(per_s))} {unit}/s"


def _notes(told: Converted, width: int) -> str:
    skipped = told.dataset.skipped
    lines = list(told.notes)
    if skipped:
        shown = [f"{one.where} ({one.why})" for one in skipped[:_SHOWN]]
        more = f"; dataset.json has all {len(skipped):,}" if len(skipped) > _SHOWN else ""
        were = "was" if len(skipped) == 1 else "were"
        lines.append(f"{len(skipped):,} {were} left out: {', '.join(shown)}{more}.")
    return "\n".join(wrapped(line, width=width, first="- ", rest="  ") for line in lines)
