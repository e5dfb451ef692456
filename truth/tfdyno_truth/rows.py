"""Published measurements that tfdyno can be asked for, and the rules that leave some out."""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno_truth.suspicious import decisions

if TYPE_CHECKING:
    from collections.abc import Sequence

TRUTH = Path(__file__).resolve().parents[1]
PRECISION = {
    "FP32": "float32",
    "TF32": "tf32",
    "AMP": "mixed_float16",
    "AMP-BF16": "mixed_bfloat16",
    "FP16": "float16",
    "BF16": "bfloat16",
}
SHARED_POLICY = {"tf32": "float32", "bfloat16": "mixed_float16", "float16": "mixed_float16"}
"""Policy of the record of other precisions; the type is exchanged when it is read."""
NOT_EXPRESSIBLE = re.compile(
    r"q=C|gradient checkpointing|Adafactor(?!-type)|8-bit|\b[tp]p\d|Megatron|real data"
)
NHWC = re.compile(r"\bNHWC\b|channels[-_ ]last")
LAUNCH_BOUND = re.compile(r"launch[- ]bound|launch/host bound")
ACCUMULATION = re.compile(r"grad-accum (\d+)")
CHIP = re.compile(r"v100|a100|h100|gh200|b200")
GIB = 2**30
ZOO = "zoo.py"
"""File of the builders that need no prefix in the name of their record."""
OF_JAX = "-jax"
"""Behind the file's name in the key of a record of a step that TensorFlow does not run."""
TABLES = {"published": ("measurements.csv", 0), "modern": ("modern.csv", 100_000)}
"""Table of published rows: its file and the number of its first row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement with what an estimate of it needs."""

    table: str
    """``published`` (what the constants are fitted to), ``modern`` or ``own``."""
    number: int
    """Unique over all tables."""
    source: str
    framework: str
    """``tensorflow`` (Keras on JAX too), ``pytorch``, or the engine of what is not Keras."""
    engine: str
    """What runs the operations: ``tensorflow``, ``jax``, ``reactant`` (Julia), ``pytorch``."""
    version: str
    """The framework's, as the source gives it."""
    model: str
    gpu: str
    slug: str
    gpus: int
    interconnect: str
    batch_size: int
    precision: str
    mode: str
    execution: str
    zoo: str
    """File of the builder, in ``truth``."""
    function: str
    """Builder in that file."""
    step_s: float
    memory_bytes: float
    memory_kind: str
    launch_bound: bool
    fused_attention: bool
    channels_last: bool
    """PyTorch with the memory format that is not its default, which the command cannot be told."""
    accumulation: int
    """Steps for each run of the optimizer; ``step_s`` is that of one."""
    host: tuple[str, ...]
    """Equal for runs that differ in the number of GPUs only."""
    notes: str

    @property
    def group(self) -> tuple[str, str, str, str]:
        """Rows of one group are averaged before groups are."""
        return (self.model.removeprefix("tf_"), self.gpu, self.precision, self.mode)

    @property
    def apart(self) -> str:
        """Why the row is judged in a line of its own; empty for most."""
        if self.launch_bound:
            return "launch-bound"
        if self.fused_attention:
            return "fused attention"
        return "channels-last" if self.channels_last else ""

    @property
    def chip(self) -> str:
        """All cards with one chip, which are left out together."""
        found = CHIP.search(self.slug)
        return {"gh200": "h100"}.get(found[0], found[0]) if found else self.slug

    @property
    def architecture(self) -> str:
        """All sizes of one kind of model, which are left out together (``resnet``, ``bert``)."""
        name = re.sub(r"^tf_", "", self.function)
        return re.split(r"[\d_]", name.replace("efficientnetv2", "efficientnet_v2"))[0]

    @property
    def record(self) -> tuple[str, str, str]:
        """Key of the kernel record: builder, mode and Keras policy as traced.

        Builders of other files than ``zoo.py`` have the file's name before theirs
        (``today.resnet50_224``; ``today-jax.resnet50_224`` for steps that TensorFlow does not run),
        and bfloat16 records of their own: it has no loss scaling.
        """
        shared = dict(SHARED_POLICY)
        if self.zoo == ZOO:
            shared["mixed_bfloat16"] = "mixed_float16"
        where = self.zoo.removeprefix("zoo_").removesuffix("py") if self.zoo != ZOO else ""
        if where and self.engine != "tensorflow":
            where = where.replace(".", f"{OF_JAX}.")
        return (f"{where}{self.function}", self.mode, shared.get(self.precision, self.precision))


def read_rows(truth: Path = TRUTH, tables: Sequence[str] = ("published",)) -> list[Row]:
    """Every row that ``tfdyno estimate`` can express, whatever the number of GPUs.

    Args:
        truth: Where the measurements are.
        tables: Which of ``TABLES``; the rows that the constants are fitted to unless asked.
    """
    builders, found = _builders(truth / "zoo_models.csv"), []
    for table in tables:
        name, first = TABLES[table]
        with (truth / "published" / name).open(newline="") as file:
            for number, raw in enumerate(csv.DictReader(file), first):
                found.append(_row(table, number, raw, builders))
    return [row for row in found if row]


def _builders(path: Path) -> dict[tuple[str, str, str, str], tuple[str, str, str]]:
    with path.open(newline="") as file:
        return {
            (r["model"], r["source"], r["input"], r["phase"]): (
                *r["workload"].split(":"),
                r["kind"],
            )
            for r in csv.DictReader(file)
            if r["workload"]
        }


def _row(
    table: str,
    number: int,
    raw: dict[str, str],
    builders: dict[tuple[str, str, str, str], tuple[str, str, str]],
) -> Row | None:
    phase = "pretrain" if "pre-training" in raw["notes"] else ""
    key = (raw["model"], raw["source"], raw["input"], phase)
    zoo, function, kind = builders.get(key, ("", "", ""))
    slug = _slug(raw["gpu"])
    precision, memory = PRECISION.get(raw["precision"], ""), _memory_kind(raw)
    gpus, batch = int(raw["gpus"] or 1), float(raw["batch_per_gpu"] or 0)
    step_s = _step_s(raw, batch, gpus)
    most = 2048 if kind == "transformer" else 8192
    outside = raw["model"] == "ssd320-resnet50-fpn" and raw["mode"] == "infer"
    if not function or not slug or not precision or NOT_EXPRESSIBLE.search(raw["notes"]):
        return None
    if outside or not (step_s or memory) or batch != int(batch) or batch > most:
        return None
    columns = ("source", "framework_version", "model", "gpu", "precision", "xla", "mode", "input")
    torch = raw["framework"].startswith("PyTorch")
    if torch:
        execution = "compiled-torch" if "torch.compile" in raw["notes"] else "eager-torch"
    else:
        execution = "xla" if raw["xla"] == "yes" else "graph"
    steps = ACCUMULATION.search(raw["notes"])
    framework, engine = _framework(raw["framework"])
    return Row(
        table=table,
        number=number,
        source=raw["source"],
        framework=framework,
        engine=engine,
        version=raw["framework_version"],
        model=raw["model"],
        gpu=raw["gpu"],
        slug=slug,
        gpus=gpus,
        interconnect=raw["interconnect"],
        batch_size=int(batch),
        precision=precision,
        mode=raw["mode"],
        execution=execution,
        zoo=zoo,
        function=function,
        step_s=step_s,
        memory_bytes=float(raw["peak_mem_gb"] or 0) * GIB,
        memory_kind=memory,
        launch_bound=(kind == "cnn" and batch < 16) or bool(LAUNCH_BOUND.search(raw["notes"])),
        fused_attention=raw["source"].startswith("timm")
        and raw["framework_version"].startswith("2.")
        and bool(re.match(r"vit_|deit_", raw["model"])),
        channels_last=execution == "eager-torch" and bool(NHWC.search(raw["notes"])),
        accumulation=int(steps[1]) if steps else 1,
        host=(*(raw[column] for column in columns), raw["batch_per_gpu"], phase),
        notes=raw["notes"],
    )


def _framework(name: str) -> tuple[str, str]:
    """``framework`` and ``engine`` of a row."""
    if name.startswith("PyTorch"):
        return "pytorch", "pytorch"
    engine = "jax" if "JAX" in name else "reactant" if "Reactant" in name else "tensorflow"
    return "tensorflow" if re.search("TensorFlow|Keras", name) else engine, engine


@functools.cache
def _slug(card: str) -> str:
    """Slug of a measured card; empty where the catalogue does not have it."""
    try:
        return find(card).slug
    except UsageError:
        return ""


def _step_s(raw: dict[str, str], batch: float, gpus: int) -> float:
    if raw["step_ms"]:
        return float(raw["step_ms"]) / 1e3
    if raw["throughput"] and raw["throughput_unit"] in ("img/s", "seq/s", "samples/s"):
        return batch * gpus / float(raw["throughput"])
    return 0.0


def _memory_kind(raw: dict[str, str]) -> str:
    """allocated, nvml (with CUDA context), reserved (only a bound), limit, or nothing."""
    if "MEMORY LIMIT" in raw["notes"]:
        return "limit"
    coarse = "TF grows in coarse steps" in raw["notes"] and "TensorFlow" in raw["framework"]
    if not raw["peak_mem_gb"] or coarse:
        return ""
    if "max_memory_allocated" in raw["notes"]:
        return "allocated"
    if "nvidia-smi" in raw["notes"]:
        return "reserved" if raw["gpus"] == "1" else ""
    return "" if "grad-accum" in raw["notes"] else "nvml"


def single_gpu(rows: list[Row]) -> list[Row]:
    """Rows that say how long a step takes on one GPU, without those that prove to be mislabelled.

    Which ones those are, and why, is in ``truth/suspicious.csv``.
    """
    alone = [row for row in rows if row.gpus == 1 and row.step_s > 0]
    decided = decisions(alone)
    excluded = {number for number, line in decided.items() if line.decision == "excluded"}
    return [row for row in alone if row.number not in excluded]


def contradicted(rows: list[Row]) -> set[int]:
    """Numbers of rows that the fit must not see; ``truth/suspicious.csv`` says why."""
    return {number for number, line in decisions(rows).items() if line.decision == "not learned"}
