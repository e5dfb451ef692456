"""Published measurements that tfdyno can be asked for, and the rules that leave some out."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tfdyno.catalog.gpus import all_gpus

TRUTH = Path(__file__).resolve().parents[2] / "truth"
PRECISION = {
    "FP32": "float32",
    "TF32": "tf32",
    "AMP": "mixed_float16",
    "AMP-BF16": "mixed_bfloat16",
    "FP16": "float16",
    "BF16": "bfloat16",
}
STAND_IN = {
    "B200-192GB": "b200-sxm-180gb",
    "V100-SXM3-32GB": "v100-sxm2-32gb",
    "V100-SXM3-32GB-H": "v100-sxm2-32gb",
    "RTX PRO 6000 Max-Q": "rtx-pro-6000-blackwell-max-q",
    "TITAN X-12GB": "titan-x-pascal",
}
"""Measured cards that the catalogue has under another name, or a near card of it."""
NOT_EXPRESSIBLE = re.compile(r"gradient checkpointing|Adafactor|8-bit|\b[tp]p\d|Megatron|real data")
CHIP = re.compile(r"v100|a100|h100|gh200|b200")
GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement with what an estimate of it needs."""

    number: int
    source: str
    framework: str
    model: str
    gpu: str
    slug: str
    gpus: int
    interconnect: str
    batch_size: int
    precision: str
    mode: str
    execution: str
    function: str
    """Builder in ``truth/zoo.py``."""
    step_s: float
    memory_bytes: float
    memory_kind: str
    launch_bound: bool
    fused_attention: bool
    host: tuple[str, ...]
    """Equal for runs that differ in the number of GPUs only."""
    notes: str

    @property
    def group(self) -> tuple[str, str, str, str]:
        """Rows of one group are averaged before groups are."""
        return (self.model.removeprefix("tf_"), self.gpu, self.precision, self.mode)

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
        """Key of the kernel record: builder, mode and Keras policy as traced."""
        policy = {
            "tf32": "float32",
            "mixed_bfloat16": "mixed_float16",
            "bfloat16": "mixed_float16",
            "float16": "mixed_float16",
        }.get(self.precision, self.precision)
        return (self.function, self.mode, policy)


def read_rows(truth: Path = TRUTH) -> list[Row]:
    """Every row that ``tfdyno estimate`` can express, whatever the number of GPUs."""
    known = {gpu.slug for gpu in all_gpus()}
    builders = _builders(truth / "zoo_models.csv")
    with (truth / "published" / "measurements.csv").open(newline="") as file:
        found = [
            _row(number, raw, builders, known) for number, raw in enumerate(csv.DictReader(file))
        ]
    return [row for row in found if row]


def _builders(path: Path) -> dict[tuple[str, str, str, str], tuple[str, str]]:
    with path.open(newline="") as file:
        return {
            (r["model"], r["source"], r["input"], r["phase"]): (
                r["workload"].split(":")[1],
                r["kind"],
            )
            for r in csv.DictReader(file)
            if r["workload"]
        }


def _row(
    number: int,
    raw: dict[str, str],
    builders: dict[tuple[str, str, str, str], tuple[str, str]],
    known: set[str],
) -> Row | None:
    phase = "pretrain" if "pre-training" in raw["notes"] else ""
    function, kind = builders.get((raw["model"], raw["source"], raw["input"], phase), ("", ""))
    slug = STAND_IN.get(raw["gpu"]) or re.sub(r"[^a-z0-9]+", "-", raw["gpu"].lower())
    precision, memory = PRECISION.get(raw["precision"], ""), _memory_kind(raw)
    gpus, batch = int(raw["gpus"] or 1), float(raw["batch_per_gpu"] or 0)
    step_s = _step_s(raw, batch, gpus)
    most = 2048 if kind == "transformer" else 8192
    outside = raw["model"] == "ssd320-resnet50-fpn" and raw["mode"] == "infer"
    if not function or slug not in known or not precision or NOT_EXPRESSIBLE.search(raw["notes"]):
        return None
    if outside or not (step_s or memory) or batch != int(batch) or batch > most:
        return None
    columns = ("source", "framework_version", "model", "gpu", "precision", "xla", "mode", "input")
    torch = raw["framework"].startswith("PyTorch")
    compiled = raw["xla"] == "yes" or "torch.compile" in raw["notes"]
    return Row(
        number=number,
        source=raw["source"],
        framework="tensorflow" if re.search("TensorFlow|Keras", raw["framework"]) else "pytorch",
        model=raw["model"],
        gpu=raw["gpu"],
        slug=slug,
        gpus=gpus,
        interconnect=raw["interconnect"],
        batch_size=int(batch),
        precision=precision,
        mode=raw["mode"],
        execution="xla" if compiled else "eager-torch" if torch else "graph",
        function=function,
        step_s=step_s,
        memory_bytes=float(raw["peak_mem_gb"] or 0) * GIB,
        memory_kind=memory,
        launch_bound=(kind == "cnn" and batch < 16) or "launch-bound" in raw["notes"],
        fused_attention=raw["source"].startswith("timm")
        and raw["framework_version"].startswith("2.")
        and bool(re.match(r"vit_|deit_", raw["model"])),
        host=(*(raw[column] for column in columns), raw["batch_per_gpu"], phase),
        notes=raw["notes"],
    )


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
    """Rows that say how long a step takes on one GPU."""
    return [row for row in rows if row.gpus == 1 and row.step_s > 0]


def contradicted(rows: list[Row]) -> set[int]:
    """Numbers of rows that the fit must not see; each rule is explained in ``truth/README.md``."""
    fastest: defaultdict[tuple[object, ...], float] = defaultdict(lambda: float("inf"))
    for row in rows:
        fastest[_duplicate_key(row)] = min(fastest[_duplicate_key(row)], row.step_s)
    slow = {row.number: _is_slower(row, fastest[_duplicate_key(row)]) for row in rows}
    logs: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        logs[(row.host[:-2], row.execution)].append(row)
    slow_logs = {
        row.number
        for log in logs.values()
        if 2 * sum(slow[row.number] for row in log) > len(log)
        for row in log
    }
    return {row.number for row in rows if slow[row.number] or _is_bad(row)} | slow_logs


def _duplicate_key(row: Row) -> tuple[object, ...]:
    setting = (row.precision, row.mode, row.execution, row.framework)
    return (row.function, row.slug, row.batch_size, *setting)


def _is_slower(row: Row, fastest_s: float) -> bool:
    return not row.source.startswith("timm") and row.step_s > 1.4 * fastest_s


def _is_bad(row: Row) -> bool:
    impossible = (
        row.function == "bert_large_squad_seq384"
        and row.chip == "v100"
        and row.batch_size >= 42
        and row.mode == "train"
    )
    other_work = "u39kun" in row.source or (row.source.startswith("pycls") and row.mode == "train")
    input_bound = (
        row.source.startswith("NVIDIA")
        and row.chip == "a100"
        and row.mode == "infer"
        and row.architecture in ("resnet", "se", "resnext")
    )
    return impossible or other_work or input_bound
