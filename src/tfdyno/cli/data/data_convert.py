"""``tfdyno data convert``: images in folders, or a CSV file, as TFRecord files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import PATH, argument, command, flag, given, option
from tfdyno.cli.options import JSON, PYTHON, QUIET, Filled, OneOf, Read, Whole
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import number
from tfdyno.core.deploy.dataset import COMPRESSIONS
from tfdyno.model.time.shards import MOST

if TYPE_CHECKING:
    from tfdyno.jobs.data.convert import ConvertRequest

NO_SEED = "none"
_SIZE = re.compile(r"(\d+)(?:[x×,](\d+))?")
_MOST_PIXELS = 16_384
_CONVERTS = ("shards", "shard_bytes", "label", "delimiter", "image_size", "compression",
             "shuffle_seed", "skip_bad")  # fmt: skip
"""Options that ``--verify`` does not take."""


def _image_size(value: object) -> tuple[int, int]:
    """Height and width: ``224x224``, or ``224`` for both; raises ``UsageError``."""
    found = _SIZE.fullmatch(str(value).strip())
    size = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not all(1 <= side <= _MOST_PIXELS for side in size):
        raise UsageError(f"--image-size {value} is not possible",
                         remedy="write height and width, as 224x224")  # fmt: skip
    return size


def _bytes(value: object) -> int:
    """Read an amount of bytes: ``100MiB``; raises ``UsageError``."""
    from tfdyno.core.base.units import parse_bytes

    found = parse_bytes(str(value))
    if not 1 <= found < float("inf"):
        raise UsageError(f"--shard-bytes {value} is not possible", remedy="write 100MiB")
    return int(found)


def _seed(value: object) -> str:
    """Read a whole number of at least 0, or ``none``; raises ``UsageError``."""
    text = str(value).strip().lower()
    if text == NO_SEED:
        return text
    seed = number(text, "--shuffle-seed")
    if seed != int(seed) or seed < 0:
        raise UsageError(f"--shuffle-seed {value} is not possible",
                         remedy="give a whole number, or none")  # fmt: skip
    return str(int(seed))


def _delimiter(value: object) -> str:
    r"""Read one character; ``\t`` and ``tab`` mean a tab; raises ``UsageError``."""
    text = {"\\t": "\t", "tab": "\t"}.get(str(value), str(value))
    if len(text) != 1 or not text.isascii() or text in '"\r\n':
        raise UsageError(f"--delimiter '{value}' is not possible", remedy="give one sign, or tab")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    source: Path = argument(type=PATH)
    destination: Path | None = argument(type=PATH, required=False)
    shards: int | None = option(type=Whole("shards", most=MOST), help="So many files.")
    shard_bytes: int | None = option(
        type=Read("SIZE", _bytes),
        help="About so much in a file.  [default: 128MiB, and at least 8 files]",
    )
    label: str | None = option(type=Filled(), metavar="COLUMN", help="Of a CSV: what is learned.")
    delimiter: str | None = option(
        type=Read("SIGN", _delimiter),
        help="Of a CSV: between two fields.  [default: a comma, a tab in .tsv]",
    )
    image_size: tuple[int, int] | None = option(
        type=Read("HxW", _image_size),
        help="Resize images and store pixels, which need no decoding; larger, and for this size "
        "alone.  [default: images stay as they are encoded]",
    )  # fmt: skip
    compression: str | None = option(
        type=OneOf("--compression", COMPRESSIONS),
        help="Of the files: none or gzip.  [default: none]",
    )  # fmt: skip
    shuffle_seed: str | None = option(
        type=Read("N|none", _seed),
        help="Order of the records; none: that of the source.  "
        "[default: 0 for images, none for a CSV]",
    )  # fmt: skip
    skip_bad: bool = flag(help="Leave out what cannot be read, and list it.")
    measure: bool = flag(
        "--measure/--no-measure", default=True, show_default=True,
        help="Read both in turns afterwards, for about half a minute.",
    )  # fmt: skip
    verify: bool = flag(
        help="Only check files that were converted: bytes (SHA-256) and number of records."
    )
    python: str | None = PYTHON
    as_json: bool = JSON
    quiet: bool = QUIET
    verbose: bool = flag("-v", "--verbose", help="Show every stage and file as a line.")


@command(_Options)
def convert(options: _Options) -> Answer:
    """Convert images or a CSV to TFRecord, and measure the gain.

    SOURCE is a folder with one folder of images per class, as
    keras.utils.image_dataset_from_directory reads it, or a CSV file with a line of column names.
    DESTINATION is a new folder; beside the records, read_dataset.py reads them in plain
    TensorFlow.

    After Ctrl-C, a kill or a full disk the same command goes on where it was, and ends with the
    same bytes. Later, --verify with DESTINATION alone, or with SOURCE before it, checks them.
    """
    if options.verify:
        return _verify(options)
    if options.destination is None:
        raise UsageError("there is no DESTINATION", remedy="name a new folder after SOURCE")
    from tfdyno.cli.data.convert_progress import convert_progress
    from tfdyno.jobs.data.convert import convert as run
    from tfdyno.view.data.convert_text import convert_document, convert_text

    with convert_progress(quiet=options.quiet, verbose=options.verbose) as progress:
        told = run(_request(options, options.destination), progress=progress)
    return Answer(document=partial(convert_document, told), text=partial(convert_text, told))


def _request(options: _Options, destination: Path) -> ConvertRequest:
    from tfdyno.jobs.data.convert import ConvertRequest

    source, seed = options.source, options.shuffle_seed
    return ConvertRequest(
        source=source,
        destination=destination,
        shards=options.shards or 0,
        shard_bytes=options.shard_bytes or 0,
        compression=options.compression or "none",
        shuffle_seed=None if seed is None or seed == NO_SEED else int(seed),
        keep_order=seed == NO_SEED,
        image_size=options.image_size,
        label=options.label or "",
        delimiter=options.delimiter or ("\t" if source.suffix.lower() == ".tsv" else ","),
        skip_bad=options.skip_bad,
        measure=options.measure,
        python=options.python or "",
    )


def _verify(options: _Options) -> Answer:
    """Check a data set; 1 where it is damaged."""
    if refused := given(options, *_CONVERTS):
        raise UsageError(f"{refused[0]} does not go with --verify",
                         why="nothing is converted")  # fmt: skip
    from tfdyno.cli.progress import progress_line
    from tfdyno.jobs.data.verify import verify
    from tfdyno.view.data.convert_text import verify_text

    folder = options.destination or options.source
    source = options.source if options.destination else None
    with progress_line(quiet=options.quiet, verbose=options.verbose) as progress:
        found = verify(folder, source=source, progress=progress)
    return Answer(
        document=lambda: found,
        text=partial(verify_text, str(folder), found),
        exit_code=int(bool(found.damaged)),
    )
