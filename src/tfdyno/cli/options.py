"""Options that several commands share, and the types of their values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.recipe.recipe import Recipe

    Option = Callable[[Callable[..., Any]], Callable[..., Any]]


class Whole(click.ParamType[int]):
    """A whole number of at least 1, or 0; ``nan``, ``-3`` and ``1.5`` are refused in words."""

    name = "N"

    def __init__(self, what: str, *, least: int = 1, most: int = settings.MOST_IN_A_RUN) -> None:
        self.what, self.least, self.most = what, least, most

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the number; raises ``UsageError``."""
        return settings.whole(value, self.what, least=self.least, most=self.most)


class Positive(click.ParamType[float]):
    """A finite number above 0."""

    name = "X"

    def __init__(self, what: str) -> None:
        self.what = what

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number; raises ``UsageError``."""
        return settings.positive(str(value).removeprefix("$"), self.what)


class Wholes(click.ParamType[tuple[int, ...]]):
    """Whole numbers of at least 1, separated by commas."""

    name = "N,…"

    def __init__(self, what: str) -> None:
        self.what = what

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Read the numbers, each once, in order; raises ``UsageError``."""
        if isinstance(value, tuple):
            return value
        one = Whole(self.what)
        found = [one.convert(part.strip(), param, ctx) for part in str(value).split(",")]
        return tuple(dict.fromkeys(found))


class Shape(click.ParamType[tuple[int, ...]]):
    """Sizes of one input without the batch: ``224,224,3``; ``()`` for a scalar."""

    name = "SIZES"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Read the sizes; raises ``UsageError``."""
        text = str(value).strip().strip("()[]").strip(", ")
        if not text:
            return ()
        one = Whole("input size")
        return tuple(one.convert(part.strip(), param, ctx) for part in text.split(","))


class OneOf(click.Choice[str]):
    """One of a few names; a wrong one is told with the nearest."""

    def __init__(self, what: str, known: Iterable[str]) -> None:
        super().__init__(tuple(known))
        self.what = what

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Read the name; raises ``UsageError``."""
        return settings.one_of(str(value), self.choices, self.what)


class Filled(click.ParamType[str]):
    """Text that is not blank: an empty variable of a shell script must not mean everything."""

    name = "TEXT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Strip the text; raises ``UsageError``."""
        text = str(value).strip()
        if not text:
            raise UsageError(f"{_option(param)} is empty", remedy="give a value or leave it out")
        return text


class NewFile(click.ParamType[Path]):
    """A file to write: has a name, and is not ``-``."""

    name = "FILE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Read the path; raises ``UsageError``."""
        text = str(value)
        if not text.strip():
            raise UsageError(f"{_option(param)} is empty", remedy="name a file")
        if text == "-":
            raise UsageError(f"{_option(param)} does not write to standard output",
                             remedy="name a file")  # fmt: skip
        return Path(text)


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before minutes of work; raises ``UsageError``."""
    folder = path.parent
    if path.is_dir():
        # A sentence has no stop at the end of what happened: "." and ".." would be nothing.
        shown = path if path.name.strip(".") else path.resolve()
        raise UsageError(f"cannot write {shown}", why="it is a folder", remedy="name a file in it")
    if not folder.is_dir():
        raise UsageError(f"cannot write {path}", why=f"there is no folder {folder}")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise UsageError(f"cannot write {path}", why="permission denied")


def _option(param: click.Parameter | None) -> str:
    return param.opts[0] if param else "the option"


def together(*options: Option) -> Option:
    """Several options as one decorator, in their order in the help."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for one in reversed(options):
            command = one(command)
        return command

    return decorate


WORKLOAD = together(
    click.argument("workload"),
    click.argument("script_arguments", nargs=-1, type=click.UNPROCESSED),
)
"""What is run, and what its script is given."""
RECIPE = click.option(
    "--recipe", type=click.Path(path_type=Path), metavar="FILE", help="Settings, TOML."
)
SET = click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="One setting; many."
)
INPUT_SHAPE = click.option(
    "--input-shape",
    "input_shapes",
    type=Shape(),
    multiple=True,
    help="Sizes of an input without the batch, 224,224,3; one per input.",
)
INPUT_SPEC = click.option(
    "--input-spec",
    "input_spec",
    multiple=True,
    metavar="DTYPE[SIZES]",
    help="Arguments of a step function, in order: float32[batch,224,224,3].",
)
FIT = click.option(
    "--fit",
    "fit_number",
    type=Whole("call of fit"),
    default=1,
    show_default=True,
    help="Which call of fit in the script is meant.",
)
PYTHON = click.option(
    "--python", type=Filled(), metavar="PATH", help="Interpreter that runs your code."
)
UNSAFE = click.option("--unsafe", is_flag=True, help="Load a .keras file that holds code.")
CODE = together(INPUT_SHAPE, INPUT_SPEC, FIT, PYTHON, UNSAFE)
"""How the code of a workload is run, where a step function is one as well."""
SOFTWARE = together(
    click.option(
        "--tf",
        "--tensorflow",
        "tensorflow",
        type=Filled(),
        metavar="X.Y",
        help="Release of TensorFlow to answer for, which has to run on the card that is advised."
        "  [default: the one installed, else the newest]",
    ),
    click.option(
        "--backend",
        type=OneOf("backend", ("tensorflow", "jax")),
        help="Backend of Keras to answer for.  [default: tensorflow]",
    ),
)
"""What the step is run by."""
HTML = click.option("--html", type=NewFile(), metavar="FILE", help="Write the report.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
WAIT_FREE = click.option(
    "--wait-free", is_flag=True, help="Wait until the GPU is free of others, or has room."
)
"""What is done about others that hold memory of the cards."""
TOLD = together(
    JSON, QUIET, click.option("-v", "--verbose", is_flag=True, help="Show every stage.")
)
"""How much is told, and in which form."""
workload_options = together(
    WORKLOAD,
    click.option("--batch-size", type=Whole("batch size"), help="Samples per replica."),
    click.option(
        "--global-batch",
        type=Whole("global batch"),
        help="Hold the sum over all replicas instead of the batch of each.",
    ),
    click.option(
        "--precision",
        type=OneOf("precision", settings.PRECISIONS),
        help="Without it: the script's own; its float32 means TF32 where the card has it.",
    ),
    click.option(
        "--execution",
        type=OneOf("execution", settings.EXECUTIONS),
        help="Without it: what Keras does (xla on one device, graph on several).",
    ),
    click.option(
        "--route",
        type=OneOf("route", settings.ROUTES),
        default="auto",
        show_default=True,
        help="quick: seconds. exact: compile for the GPUs. auto: the best that is at hand.",
    ),
    click.option("--link", type=Filled(), metavar="SLUG", help="Interconnect between replicas."),
    CODE,
    SOFTWARE,
    click.option("--fresh", is_flag=True, help="Trace again, whatever the cache has."),
    click.option("--no-card-file", is_flag=True, help="Leave out what tfdyno calibrate found."),
    JSON,
    QUIET,
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="Show every stage, and the largest tensors of one estimate.",
    ),
)
"""Arguments and options that say what is run and how, for ``estimate`` and ``advise``."""


def workload_from(given: dict[str, Any], *, mode: str) -> Workload:
    """The workload that the shared options describe; raises ``UsageError``."""
    from tfdyno.jobs.choose.reference import parse_reference

    arguments, reference = given["script_arguments"], given["workload"]
    if arguments and not reference.endswith(".py"):
        raise UsageError(
            f"{reference} takes no arguments, but got '{' '.join(arguments)}'",
            remedy="only a script does, after --",
        )
    return parse_reference(
        reference,
        mode="infer" if mode == "infer" else "train",
        precision=given["precision"] or "",
        input_shapes=given["input_shapes"],
        input_spec=given["input_spec"],
        script_arguments=arguments,
        fit_number=given["fit_number"],
        python=given["python"] or "",
        allow_unsafe=given["unsafe"],
        software=software_asked(given),
    )


def software_asked(given: dict[str, Any]) -> str:
    """What ``--tf`` and ``--backend`` ask for; empty where neither is given.

    Raises:
        UsageError: They contradict each other.
    """
    release, backend = given.get("tensorflow") or "", given.get("backend") or ""
    if release and backend == "jax":
        raise UsageError("--tf and --backend jax contradict each other", remedy="give one of them")
    return f"tensorflow {release}" if release else backend


def recipe_from(file: str | Path | None, changes: Mapping[str, object]) -> Recipe:
    """The settings of ``--recipe``, and those of ``--set`` over them; raises ``UsageError``."""
    from tfdyno.core.recipe.recipe import Recipe, from_settings
    from tfdyno.core.recipe.recipe_file import read_recipe

    return from_settings(changes, read_recipe(Path(file)) if file else Recipe())
