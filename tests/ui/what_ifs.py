"""Random what-ifs, asked of the page's server and of the command line."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import all_gpus
from tfdyno.cli.main import main
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.base.settings import PRECISIONS, TRAINED_EXECUTIONS
from tfdyno.core.choose.hardware import VENDOR
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.ui import answers
from tfdyno.ui import settings as own
from tfdyno.ui.settings import Settings, read_settings
from tfdyno.ui.traces import NotTraced, Traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tfdyno.core.choose.workload import Workload

MODEL = f"{Path(__file__).parents[1] / 'data' / 'models' / 'small.py'}:convnet"
GIVEN = parse_reference(MODEL)
CARDS = [gpu.slug for gpu in all_gpus() if gpu.vendor.upper() == VENDOR]
OFFERED = ["a100-sxm4-80gb", "h100-sxm5-80gb", "l4", "rtx-4090", "t4", "v100-sxm2-16gb", "l40s"]
Ask = tuple["Callable[[Settings, Workload | None, Traces], bytes]",
            "Callable[[Settings, Workload], list[str]]"]  # fmt: skip
STEP: Ask = (answers.step_answer, own.step_words)
RUN: Ask = (answers.run_answer, own.run_words)
RANKING: Ask = (answers.ranking_answer, own.ranking_words)


def drawn(random: Random, workload: str = MODEL) -> Settings:
    """Settings as the controls of the page can stand; some of them have no answer."""

    def maybe(value: object) -> str:
        return str(value) if random.random() < 0.5 else ""

    return read_settings(
        {
            "workload": workload,
            "gpu": random.choice(CARDS if random.random() < 0.5 else OFFERED),
            "count": str(random.choice((1, 1, 1, 2, 4, 8, 3, 16))),
            "batch_size": maybe(int(2 ** random.uniform(0, 14))),
            "precision": maybe(random.choice(PRECISIONS)),
            "execution": maybe(random.choice(TRAINED_EXECUTIONS)),
            "epochs": maybe(random.randint(1, 300)),
            "samples": maybe(random.randint(1, 10**7)),
            "usd_per_h": maybe(round(random.uniform(0.01, 99.0), 4)),
            "offers": random.choice(("every", "no-spot", "spot")),
        }.items()
    )


def of_page(ask: Ask, asked: Settings, traces: Traces) -> tuple[bytes, str]:
    """Give the document as the page gets it, or the sentence, and its command."""
    command = own.command_line(ask[1](asked, own.workload_of(asked, GIVEN)))
    try:
        while True:
            with contextlib.suppress(NotTraced):
                whole = ask[0](asked, GIVEN, traces)
                break
            time.sleep(0.02)
    except TfdynoError as error:
        return str(error).encode(), command
    assert json.loads(whole)["command"] == command
    return whole[whole.index(b'"document":') + len(b'"document":') : -1], command


def of_command(command: str, *more: str) -> bytes:
    """Give what the command prints: the document, or the sentence of its refusal."""
    out, told = io.StringIO(), io.StringIO()
    words = shlex.split(command)[1:]
    place = words.index("--") if "--" in words else len(words)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        code = main([*words[:place], "--json", "--quiet", *more, *words[place:]])
    if code == 0:
        return out.getvalue().strip().encode()
    return told.getvalue().strip().removeprefix("tfdyno: ").encode()
