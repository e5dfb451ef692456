"""Convert a folder of images or a CSV file to sharded TFRecord files, and go on after any end."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.base.units import format_bytes
from tfdyno.core.base.version import VERSION
from tfdyno.core.deploy.dataset import (
    Begun,
    Converted,
    ConvertSettings,
    Dataset,
    ReadSpeed,
    Written,
)
from tfdyno.core.messages.data import COMPARE_READING, WRITE_SHARDS, CompareReading, WriteShards
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.jobs.choose.trace import interpreter_named
from tfdyno.jobs.data._convert_source import Listed, kind_of, look
from tfdyno.model.measure.comparison import compare_rates
from tfdyno.model.time.shards import MOST, shard_count, shard_name, shard_ranges
from tfdyno.render.data.dataset_reader import dataset_reader
from tfdyno.store.dataset_folder import DatasetFolder
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from collections.abc import Callable


IMAGE_SEED = 0
"""The seed of the order of images where none is given: by class, each shard would hold one class.
"""
PAIRS = 8
"""The fewest pairs of turns."""
BATCH_SIZE = 32
IMAGE_SIZE = (256, 256)
"""Defaults of ``keras.utils.image_dataset_from_directory``."""
LIMIT_S = 900.0
"""The time for imports, the list of a large folder, and the turns, which take up to a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertRequest:
    """What is converted, how, and where to."""

    source: Path
    destination: Path
    shards: int = 0
    """0: by ``shard_bytes``."""
    shard_bytes: int = 0
    """About; 0: 128 MiB, and at least eight shards."""
    compression: str = "none"
    shuffle_seed: int | None = None
    keep_order: bool = False
    """Keep the order of the source; else images without a seed are shuffled with 0."""
    image_size: tuple[int, int] | None = None
    label: str = ""
    delimiter: str = ","
    skip_bad: bool = False
    measure: bool = True
    python: str = ""


def convert(request: ConvertRequest, *, progress: Callable[[str], None] = silent) -> Converted:
    """Write what is missing of the data set, then measure what it gains.

    A stop at any moment loses the shard that is being written; the same question goes on, and the
    files are those of a conversion that was not stopped.

    Args:
        request: What is asked.
        progress: Called with a line at every stage, and with ``{"event": "convert", …}``.

    Raises:
        UsageError: There is nothing to convert, a part of it cannot be read, or the destination
            holds something else.
        ToolError: There is no room, or the child failed.
    """
    _check(request)
    folder = DatasetFolder(request.destination)
    folder.check(request.source)
    python = interpreter_named(request.python)
    found = look(
        request.source,
        image_size=request.image_size,
        label=request.label,
        delimiter=request.delimiter,
        skip_bad=request.skip_bad,
        progress=progress,
    )
    settings = _settings(request, found)
    wanted = Begun(source_sha256=found.source.sha256, settings=settings)
    began_s = time.monotonic()
    with folder.held():
        kept, missing = _state(folder, wanted, request, progress)
        if missing:
            _write(request, folder, found, wanted, kept, missing, python, progress)
        dataset = _dataset(found, settings, folder.finished())
        folder.finish(dataset, dataset_reader(dataset))
    spent_s = time.monotonic() - began_s if missing else 0.0
    speed, why = _measured(request, dataset, python, progress)
    return Converted(
        folder=request.destination,
        dataset=dataset,
        kept_shards=len(kept),
        seconds_s=spent_s,
        speed=speed,
        not_measured=why,
        notes=found.notes,
    )


def _check(request: ConvertRequest) -> None:
    """Refuse options that do not go together, before any work."""
    if request.shards and request.shard_bytes:
        raise UsageError("--shards and --shard-bytes do not go together", remedy="give one of them")
    if request.keep_order and request.shuffle_seed is not None:
        raise UsageError("a seed shuffles and keeps no order", remedy="give one of them")
    if kind_of(request.source) == "images":
        if request.label:
            raise UsageError("--label is for a CSV file", why="images take the names of folders")
        return
    if request.image_size:
        raise UsageError("--image-size is for images", why=f"{request.source} is a table")


def _settings(request: ConvertRequest, found: Listed) -> ConvertSettings:
    if request.shards > found.records:
        raise UsageError(f"{request.shards:,} shards are not possible",
                         why=f"there are {plural(found.records, 'record')}")  # fmt: skip
    shards = request.shards or shard_count(
        found.records, found.converted_bytes, shard_bytes=request.shard_bytes
    )
    if shards > MOST:
        raise UsageError(f"{shards:,} shards are too many",
                         remedy=f"give a larger --shard-bytes, for {MOST:,} at most")  # fmt: skip
    seed = request.shuffle_seed
    if seed is None and found.kind == "images" and not request.keep_order:
        seed = IMAGE_SEED
    return ConvertSettings(
        kind=found.kind,
        shards=shards,
        compression=request.compression,
        shuffle_seed=seed,
        image_size=request.image_size,
        label=request.label,
        delimiter=request.delimiter,
    )


def _state(
    folder: DatasetFolder, wanted: Begun, request: ConvertRequest, progress: Callable[[str], None]
) -> tuple[tuple[Written, ...], list[int]]:
    """Return finished shards that are sound, and the places of the others."""
    names = [
        shard_name(place, wanted.settings.shards, wanted.settings.compression)
        for place in range(wanted.settings.shards)
    ]
    kept: tuple[Written, ...] = ()
    if before := folder.begun():
        begun, written = before
        folder.check_same(begun, wanted, request.source)
        if any(one.skipped for one in written) and not request.skip_bad:
            raise UsageError(
                f"{request.destination} was begun with --skip-bad",
                remedy="add it again, or name a new folder",
            )
        kept = folder.sound(
            written,
            lambda done: progress(f"checking finished shards: {done} of {len(written)}"),
        )
    done = {one.shard.file for one in kept}
    return kept, [place for place, name in enumerate(names) if name not in done]


def _write(
    request: ConvertRequest,
    folder: DatasetFolder,
    found: Listed,
    wanted: Begun,
    kept: tuple[Written, ...],
    missing: list[int],
    python: str,
    progress: Callable[[str], None],
) -> None:
    """Let a child write the missing shards; says with what stops it how much is kept."""
    settings = wanted.settings
    _check_room(request, found, len(missing) / settings.shards)
    ordered = found.shuffled(settings.shuffle_seed)
    ranges = shard_ranges(found.records, settings.shards)
    shards = tuple(
        ordered.shard(shard_name(place, settings.shards, settings.compression), *ranges[place])
        for place in missing
    )
    journal = folder.start(wanted, kept)
    total = sum(end - first for first, end in (ranges[place] for place in missing))
    try:
        with tempfile.TemporaryDirectory(prefix="tfdyno-") as name:
            offsets = Path(name) / "offsets"
            if ordered.offsets is not None:
                offsets.write_bytes(ordered.offsets)
            run_child(
                WRITE_SHARDS,
                WriteShards(
                    source=request.source,
                    folder=request.destination,
                    journal=journal,
                    settings=settings,
                    features=found.features,
                    classes=found.classes,
                    offsets=offsets,
                    skip_bad=request.skip_bad,
                    shards=shards,
                ),
                progress=lambda line: progress(_event(line, total, len(missing))),
                timeout_s=math.inf,
                python=python,
                doing=f"converting {request.source}",
            )
    except BaseException as error:
        folder.remove_parts()
        done = f"{len(folder.finished())} of {plural(settings.shards, 'shard')} are finished in"
        again = "" if isinstance(error, UsageError) else "; the same command goes on"
        error.add_note(f"{done} {request.destination}{again}.")
        raise


def _event(line: str, records: int, shards: int) -> str:
    """Return a line of the child, with how much there is to do."""
    if not line.startswith("{"):
        return line
    told: dict[str, Any] = json.loads(line)
    return json.dumps({"event": "convert", **told, "of_records": records, "of_shards": shards})


def _check_room(request: ConvertRequest, found: Listed, share: float) -> None:
    """Refuse what surely does not fit on the disk, before hours of work; raises ``ToolError``."""
    needed = found.converted_bytes * share
    free = shutil.disk_usage(request.destination).free
    if found.is_exact and request.compression == "none" and needed > free:
        raise ToolError(
            f"{request.destination} needs {format_bytes(needed)} of room",
            why=f"its disk has {format_bytes(free)} free",
            remedy="free some space, then give the same command again",
        )


def _dataset(found: Listed, settings: ConvertSettings, written: tuple[Written, ...]) -> Dataset:
    """Read the manifest; raises ``ToolError`` where a shard is missing, or nothing was readable."""
    if len(written) != settings.shards:
        raise ToolError(f"{len(written)} of {settings.shards} shards are finished",
                        remedy="give the same command again")  # fmt: skip
    records = sum(one.shard.records for one in written)
    if not records:
        raise UsageError(f"nothing in {found.source.path} could be read",
                         why=f"the first fault: {written[0].skipped[0].why}")  # fmt: skip
    return Dataset(
        tfdyno=VERSION,
        records=records,
        features=found.features,
        classes=found.classes,
        shards=tuple(one.shard for one in written),
        source=found.source,
        settings=settings,
        skipped=(*found.skipped, *(bad for one in written for bad in one.skipped)),
    )


def _measured(
    request: ConvertRequest, dataset: Dataset, python: str, progress: Callable[[str], None]
) -> tuple[ReadSpeed | None, str]:
    """Return both speeds, or why there are none: the data set is finished in any case."""
    if not request.measure:
        return None, "--no-measure"
    if dataset.skipped:
        return None, "the original cannot be read as it is: parts of it are damaged"
    try:
        found = read_speed(
            request.source, request.destination, dataset, python=python, progress=progress
        )
    except TfdynoError as error:
        return None, str(error).removesuffix(".")
    except BaseException as error:
        error.add_note(f"The data set in {request.destination} is finished; only measuring is not.")
        raise
    return found, ""


def read_speed(
    source: Path,
    folder: Path,
    dataset: Dataset,
    *,
    python: str,
    progress: Callable[[str], None],
) -> ReadSpeed:
    """Read original and converted data in turns in one process.

    Args:
        source: The original.
        folder: Of the converted data set.
        dataset: Its manifest.
        python: Interpreter that has TensorFlow.
        progress: Called with a line at every stage.

    Raises:
        UsageError: There is no TensorFlow.
        ToolError: One of them cannot be read.
    """
    settings = dataset.settings
    image_size = (settings.image_size or IMAGE_SIZE) if settings.kind == "images" else None
    found = run_child(
        COMPARE_READING,
        CompareReading(
            source=source,
            folder=folder,
            settings=settings,
            features=dataset.features,
            classes=dataset.classes,
            batch_size=BATCH_SIZE,
            image_size=image_size,
            pairs=PAIRS,
        ),
        progress=progress,
        timeout_s=LIMIT_S,
        python=python,
        doing="reading both in turns",
    )
    return ReadSpeed(
        before_per_s=found.before_per_s,
        after_per_s=found.after_per_s,
        comparison=compare_rates(found.before_per_s, found.after_per_s),
        before_pipeline=found.before_pipeline,
        batch_size=BATCH_SIZE,
        image_size=image_size,
        whole_epochs=found.whole_epochs,
    )
