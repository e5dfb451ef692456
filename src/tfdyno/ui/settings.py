"""What the controls of the page stand at: options of ``estimate`` and ``advise``, and no others."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal, get_args

from tfdyno.catalog.gpus import find
from tfdyno.catalog.tasks import PREFIX, find_task
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.reference import option_words, parse_reference, script_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.choose.workload import Workload

Offers = Literal["every", "no-spot", "spot"]
"""Every card, also those that nobody offers; only capacity that stays; only spot."""
KERAS = "keras:"
APPLICATIONS = (
    *(f"ConvNeXt{size}" for size in ("Base", "Large", "Small", "Tiny", "XLarge")),
    *("DenseNet121", "DenseNet169", "DenseNet201"),
    *(f"EfficientNetB{size}" for size in range(8)),
    *(f"EfficientNetV2{size}" for size in ("B0", "B1", "B2", "B3", "L", "M", "S")),
    *("InceptionResNetV2", "InceptionV3", "MobileNet", "MobileNetV2", "MobileNetV3Large"),
    *("MobileNetV3Small", "NASNetLarge", "NASNetMobile", "ResNet101", "ResNet101V2"),
    *("ResNet152", "ResNet152V2", "ResNet50", "ResNet50V2", "VGG16", "VGG19", "Xception"),
)
"""Models that come with Keras: the page may have these traced without being given them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One question; what is left out, the workload, Keras or the card decide."""

    workload: str
    gpu: str
    count: int = 1
    batch_size: int = 0
    """Samples per replica."""
    precision: str = ""
    execution: str = ""
    epochs: int = 0
    samples: int = 0
    """Samples of an epoch."""
    usd_per_h: float = 0.0
    """Your own price of the machine with so many cards; 0: the offers."""
    offers: Offers = "no-spot"
    """Which offers count."""


NAMES = tuple(one.name for one in fields(Settings))


def read_settings(query: Iterable[tuple[str, str]]) -> Settings:
    """Read a question as it stands in an address.

    Args:
        query: Names and values; a value left empty is one that is not given.

    Raises:
        UsageError: A name is unknown or given twice, one that is needed is missing, or a value is
            none that the commands take.
    """
    given: dict[str, str] = {}
    for name, value in query:
        settings.one_of(name, NAMES, "setting")
        if name in given:
            raise UsageError(f"{name} is given twice", remedy="give it once")
        given[name] = value.strip()
    missing = [name for name in ("workload", "gpu") if not given.get(name)]
    if missing:
        raise UsageError(f"{missing[0]} is missing", why="each question is of one card")
    named = {name: value for name, value in given.items() if value}

    def whole(name: str, what: str, most: int, left: int = 0) -> int:
        return settings.whole(named[name], what, most=most) if name in named else left

    precision, execution = named.get("precision", ""), named.get("execution", "")
    if precision:
        settings.one_of(precision, settings.PRECISIONS, "precision")
    if execution:
        settings.one_of(execution, settings.TRAINED_EXECUTIONS, "execution")
    price = named.get("usd_per_h")
    return Settings(
        workload=named["workload"],
        gpu=find(named["gpu"]).slug,
        count=whole("count", "number of cards", settings.MOST_REPLICAS, 1),
        batch_size=whole("batch_size", "batch size", settings.MOST_SAMPLES),
        precision=precision,
        execution=execution,
        epochs=whole("epochs", "epochs", settings.MOST_IN_A_RUN),
        samples=whole("samples", "samples", settings.MOST_IN_A_RUN),
        usd_per_h=settings.positive(price, "price") if price else 0.0,
        offers=settings.one_of(named.get("offers", "no-spot"), get_args(Offers), "offers"),
    )


def workload_of(asked: Settings, given: Workload | None) -> Workload:
    """Return what is traced for a question, in the precision that it names.

    Args:
        asked: The question.
        given: The workload of the command line; None: there was none.

    Raises:
        UsageError: It is neither that nor one that comes with Keras or tfdyno: an address in a
            browser must not run a file.
    """
    name = asked.workload
    if given is not None and name == given.reference:
        found = given
    elif name.startswith(KERAS):
        settings.one_of(name.removeprefix(KERAS), APPLICATIONS, "model of Keras")
        found = parse_reference(name)
    elif name.startswith(PREFIX):
        find_task(name.removeprefix(PREFIX))
        found = parse_reference(name)
    else:
        raise UsageError(
            f"the page does not run {name}",
            why="it runs what 'tfdyno ui' was started with, and models of Keras",
            remedy=f"start 'tfdyno ui {name}'",
        )
    policy = "float32" if asked.precision == "tf32" else asked.precision
    return replace(found, precision=policy or found.precision)


def step_words(asked: Settings, workload: Workload) -> list[str]:
    """Write the command whose answer the step is: ``tfdyno estimate …``."""
    several = ["--replicas", str(asked.count)] if asked.count > 1 else []
    return _words("estimate", asked, workload, ["--gpu", asked.gpu, *several])


def run_words(asked: Settings, workload: Workload) -> list[str]:
    """Write the command whose answer hours and cost on the card are: ``tfdyno advise --gpu …``."""
    market = ["--usd-per-h", f"{asked.usd_per_h!r}"] if asked.usd_per_h else _offer_words(asked)
    named = ["--gpu", asked.gpu, "--count", str(asked.count)]
    return _words("advise", asked, workload, [*named, *market, *_run_words(asked)])


def ranking_words(asked: Settings, workload: Workload) -> list[str]:
    """Write the command whose answer the ranking of cards is: ``tfdyno advise …``."""
    return _words("advise", asked, workload, [*_offer_words(asked), *_run_words(asked)])


def train_words(asked: Settings, workload: Workload, recipe: Iterable[str]) -> list[str]:
    """Write the command that trains by the options of a recipe; none where it brings no data."""
    if workload.has_no_data:
        return []
    epochs = ["--epochs", str(asked.epochs)] if asked.epochs else []
    own = [*option_words(workload), *script_words(workload)]  # the script trains as a whole
    return ["tfdyno", "train", asked.workload, *recipe, *epochs, *own]


def command_line(words: Iterable[str]) -> str:
    """Quote words for a shell."""
    return shlex.join(words)


def _words(command: str, asked: Settings, workload: Workload, own: list[str]) -> list[str]:
    shared = {
        "--batch-size": asked.batch_size, "--precision": asked.precision,
        "--execution": asked.execution,
    }  # fmt: skip
    given = [word for name, value in shared.items() if value for word in (name, str(value))]
    quick = ["--route", "quick"] if command == "advise" else []
    return ["tfdyno", command, asked.workload, *own, *given, *quick, *_code_words(workload)]


def _code_words(workload: Workload) -> list[str]:
    fit = ["--fit", str(workload.fit_number)] if workload.fit_number > 1 else []
    spec = [word for one in workload.input_spec for word in ("--input-spec", one)]
    return [*fit, *spec, *option_words(workload), *script_words(workload)]


def _offer_words(asked: Settings) -> list[str]:
    return [] if asked.offers == "every" else [f"--{asked.offers}"]


def _run_words(asked: Settings) -> list[str]:
    lengths = {"--epochs": asked.epochs, "--samples": asked.samples}
    return [word for name, value in lengths.items() if value for word in (name, str(value))]
