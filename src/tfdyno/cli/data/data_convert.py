"""``tfdyno data convert``: images in folders, or a CSV file, as TFRecord files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import PYTHON, Filled, OneOf, Whole
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import number
from tfdyno.core.deploy.dataset import COMPRESSIONS
from tfdyno.model.time.shards import MOST

if TYPE_CHECKING:
    from tfdyno.jobs.data.convert import Converted, ConvertRequest

NO_SEED = "none"
_SIZE = re.compile(r"(\d+)(?:[x×,](\d+))?")
_MOST_PIXELS = 16_384
_CONVERTS = ("shards", "shard_bytes", "label", "delimiter", "image_size", "compression",
             "shuffle_seed", "skip_bad")  # fmt: skip
"""Options that ``--verify`` does not take."""


class _ImageSize(click.ParamType[tuple[int, int]]):
    """Height and width: ``224x224``, or ``224`` for both."""

    name = "HxW"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Read it; raises ``UsageError``."""
        found = _SIZE.fullmatch(str(value).strip())
        size = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not all(1 <= side <= _MOST_PIXELS for side in size):
            raise UsageError(f"--image-size {value} is not possible",
                             remedy="write height and width, as 224x224")  # fmt: skip
        return size


class _Bytes(click.ParamType[int]):
    """An amount of bytes: ``100MiB``."""

    name = "SIZE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read it; raises ``UsageError``."""
        from tfdyno.core.base.units import parse_bytes

        found = parse_bytes(str(value))
        if not 1 <= found < float("inf"):
            raise UsageError(f"--shard-bytes {value} is not possible", remedy="write 100MiB")
        return int(found)


class _Seed(click.ParamType[str]):
    """A whole number of at least 0, or ``none``."""

    name = "N|none"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check it; raises ``UsageError``."""
        text = str(value).strip().lower()
        if text == NO_SEED:
            return text
        seed = number(text, "--shuffle-seed")
        if seed != int(seed) or seed < 0:
            raise UsageError(f"--shuffle-seed {value} is not possible",
                             remedy="give a whole number, or none")  # fmt: skip
        return str(int(seed))


class _Delimiter(click.ParamType[str]):
    r"""One character; ``\t`` and ``tab`` mean a tab."""

    name = "SIGN"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Read it; raises ``UsageError``."""
        text = {"\\t": "\t", "tab": "\t"}.get(str(value), str(value))
        if len(text) != 1 or not text.isascii() or text in '"\r\n':
            raise UsageError(f"--delimiter '{value}' is not possible",
                             remedy="give one sign, or tab")  # fmt: skip
        return text


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("destination", type=click.Path(path_type=Path), required=False)
@click.option("--shards", type=Whole("shards", most=MOST), help="So many files.")
@click.option(
    "--shard-bytes", type=_Bytes(),
    help="About so much in a file.  [default: 128MiB, and at least 8 files]",
)  # fmt: skip
@click.option("--label", type=Filled(), metavar="COLUMN", help="Of a CSV: what is learned.")
@click.option(
    "--delimiter", type=_Delimiter(),
    help="Of a CSV: between two fields.  [default: a comma, a tab in .tsv]",
)  # fmt: skip
@click.option(
    "--image-size", type=_ImageSize(),
    help="Resize images and store pixels, which need no decoding; larger, and for this size "
    "alone.  [default: images stay as they are encoded]",
)  # fmt: skip
@click.option(
    "--compression", type=OneOf("--compression", COMPRESSIONS),
    help="Of the files: none or gzip.  [default: none]",
)  # fmt: skip
@click.option(
    "--shuffle-seed", type=_Seed(),
    help="Order of the records; none: that of the source.  [default: 0 for images, none for a CSV]",
)  # fmt: skip
@click.option("--skip-bad", is_flag=True, help="Leave out what cannot be read, and list it.")
@click.option(
    "--measure/--no-measure", default=True, show_default=True,
    help="Read both in turns afterwards, for about half a minute.",
)  # fmt: skip
@click.option(
    "--verify", is_flag=True,
    help="Only check files that were converted: bytes (SHA-256) and number of records.",
)  # fmt: skip
@PYTHON
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.option("-v", "--verbose", is_flag=True, help="Show every stage and file as a line.")
def convert(**given: Any) -> int:
    """Convert images or a CSV to TFRecord, and measure the gain.

    SOURCE is a folder with one folder of images per class, as
    keras.utils.image_dataset_from_directory reads it, or a CSV file with a line of column names.
    DESTINATION is a new folder; beside the records, read_dataset.py reads them in plain
    TensorFlow.

    After Ctrl-C, a kill or a full disk the same command goes on where it was, and ends with the
    same bytes. Later, --verify with DESTINATION alone, or with SOURCE before it, checks them.
    """
    if given["verify"]:
        return _verify(given)
    if given["destination"] is None:
        raise UsageError("there is no DESTINATION", remedy="name a new folder after SOURCE")
    from tfdyno.cli.data.convert_progress import convert_progress
    from tfdyno.jobs.data.convert import convert as run

    with convert_progress(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        found = run(_question(given), progress=progress)
    _print(found, given)
    return 0


def _question(given: dict[str, Any]) -> ConvertRequest:
    from tfdyno.jobs.data.convert import ConvertRequest

    source, seed = given["source"], given["shuffle_seed"]
    return ConvertRequest(
        source=source,
        destination=given["destination"],
        shards=given["shards"] or 0,
        shard_bytes=given["shard_bytes"] or 0,
        compression=given["compression"] or "none",
        shuffle_seed=None if seed in (None, NO_SEED) else int(seed),
        keep_order=seed == NO_SEED,
        image_size=given["image_size"],
        label=given["label"] or "",
        delimiter=given["delimiter"] or ("\t" if source.suffix.lower() == ".tsv" else ","),
        skip_bad=given["skip_bad"],
        measure=given["measure"],
        python=given["python"] or "",
    )


def _print(found: Converted, given: dict[str, Any]) -> None:
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.data.convert_text import ConvertTold, convert_document, convert_text

    told = ConvertTold(
        folder=str(found.folder),
        dataset=found.dataset,
        kept_shards=found.kept_shards,
        seconds_s=found.seconds_s,
        speed=found.speed,
        not_measured=found.not_measured,
        notes=found.notes,
    )
    if given["as_json"]:
        _print_json(convert_document(told))
    else:
        click.echo(convert_text(told, width=terminal_width(), colour=colour_wanted()))


def _verify(given: dict[str, Any]) -> int:
    """Check a data set; 1 where it is damaged."""
    refused = [name for name in _CONVERTS if given[name]]
    if refused:
        raise UsageError(f"--{refused[0].replace('_', '-')} does not go with --verify",
                         why="nothing is converted")  # fmt: skip
    from tfdyno.cli.progress import progress_line
    from tfdyno.jobs.data.verify import verify

    folder, source = given["destination"], given["source"]
    if folder is None:
        folder, source = source, None
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        found = verify(folder, source=source, progress=progress)
    if given["as_json"]:
        _print_json(found)
    else:
        from tfdyno.view.base.text import colour_wanted, terminal_width
        from tfdyno.view.data.convert_text import verify_text

        told = verify_text(str(folder), found, width=terminal_width(), colour=colour_wanted())
        click.echo(told)
    return int(bool(found.damaged))


def _print_json(value: object) -> None:
    from tfdyno.core.base.codec import to_json

    click.echo(to_json(value, indent=2).decode())
