"""Write what another server needs to serve a model: its settings, manifests, and the model."""

from __future__ import annotations

import dataclasses
import importlib
import json
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.core.base.settings import one_of
from tfdyno.core.deploy.model_version import checked_name
from tfdyno.core.deploy.serving_plan import ENGINES, ServingPlan, replicas
from tfdyno.jobs.deploy.model_reference import exported_first, resolve
from tfdyno.jobs.deploy.model_source import model_source
from tfdyno.jobs.deploy.models import model_store
from tfdyno.render.serving.images import image_of
from tfdyno.store.model_files import copy_contents

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.deploy.serving_plan import ServedKind

Plan = TypeVar("Plan")
_FILES = (".onnx", ".plan", ".engine")
_STARTS = {
    "tfserving": "docker compose up",
    "triton": "docker compose up",
    "kserve": "kubectl apply --filename kserve.yaml",
    "kubernetes": "kubectl apply --filename kubernetes.yaml",
    "rayserve": "serve run config.yaml",
}
_COMPOSE = {"replicas": "--replicas", "storage": "--storage", "namespace": "--namespace"}
_CLUSTER = {"port": "--port"}
_IGNORED = {
    "tfserving": _COMPOSE,
    "triton": _COMPOSE,
    "kserve": _CLUSTER,
    "kubernetes": _CLUSTER,
    "rayserve": {
        "deadline_s": "--deadline-ms", "memory_bytes": "--memory", "namespace": "--namespace",
    },
}  # fmt: skip
"""Server and what its files have no place for, with the option that says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderRequest:
    """What is to be served, by what, and where the files go. None: as the size says, or usual."""

    reference: str
    engine: str
    output: Path
    name: str = ""
    size: Path | None = None
    """What ``tfdyno advise --scenario serve --json`` printed."""
    store: Path | None = None
    """Folder of the model store; None: the user's own."""
    replicas: str = ""
    """``3`` or ``2:10``."""
    max_batch_size: int | None = None
    max_delay_s: float | None = None
    max_queue: int | None = None
    deadline_s: float | None = None
    port: int | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    image: str = ""
    storage: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered(Generic[Plan]):
    """What was written."""

    output: str
    files: tuple[str, ...]
    """The files by their path in the folder, the model's own left out."""
    model: str
    """Where the model lies in the folder; empty: it is not there yet."""
    image: str
    """Empty for Ray Serve, whose cluster has its own."""
    start: str
    """The command that serves it, given in the folder."""
    plan: Plan
    notes: tuple[str, ...] = ()


def render(
    asked: RenderRequest, *, heard: Callable[[str], None] = lambda _text: None
) -> Rendered[ServingPlan]:
    """Write a folder with the files of a server and the model in the place that it wants.

    The folder appears when all of it is there.

    Raises:
        UsageError: The model is none, or none for this server; the folder is there already.
        ToolError: There is no room.
    """
    one_of(asked.engine, ENGINES, "--render")
    _check_ignored(asked)
    check_output(asked.output)
    plan, source = _plan(asked)
    module = importlib.import_module(f"tfdyno.render.serving.{plan.engine}")
    write: Callable[[ServingPlan], dict[str, str]] = getattr(module, f"render_{plan.engine}")
    files, place = write(plan), _model_place(plan)
    heard(f"copying {source}")
    written(asked.output, files, source, place)
    return Rendered(
        output=str(asked.output),
        files=tuple(sorted(files)),
        model=place,
        image="" if plan.engine == "rayserve" else image_of(plan),
        start=_STARTS[plan.engine],
        plan=plan,
        notes=_notes(plan),
    )


def _check_ignored(asked: RenderRequest) -> None:
    for name, option in _IGNORED[asked.engine].items():
        if getattr(asked, name) not in (None, ""):
            what = f"{option} is nothing that --render {asked.engine} looks at"
            raise UsageError(what, remedy="leave it out")


def _plan(asked: RenderRequest) -> tuple[ServingPlan, Path]:
    """Return the plan, and the file or folder of the model."""
    name, version, source = _model(asked)
    kind = _kind(source, asked.engine)
    scaled = _sized(asked.size) if asked.size else {}
    own = {
        field.name: getattr(asked, field.name)
        for field in dataclasses.fields(ServingPlan)
        if field.name in RenderRequest.__slots__
        and field.name not in {"name", "engine"}
        and getattr(asked, field.name) not in (None, "")
    }
    if asked.replicas:
        own["replicas_min"], own["replicas_max"] = replicas(asked.replicas)
    found: Any = {**scaled, **own}
    return ServingPlan(engine=asked.engine, name=name, kind=kind, version=version, **found), source  # type: ignore[arg-type]


def _model(asked: RenderRequest) -> tuple[str, int, Path]:
    """Name, version and path of what is to be served."""
    path = Path(asked.reference)
    if path.suffix.lower() in _FILES:
        found = model_source(path)
        return asked.name or found.name, 1, path
    served = resolve(asked.reference, store=asked.store)
    if not served.versions:
        output = shlex.quote(str(asked.output))
        again = f"tfdyno serve --render {asked.engine} --output {output}"
        raise exported_first(asked.reference, again)
    version, path = served.versions[-1]
    if served.promoted is not None:
        version, path = served.promoted, served.path_of(served.promoted)
    if served.kind == "store":
        model_store(asked.store).find(served.name, version)  # its files are what was added
    return checked_name(asked.name or served.name), version, path


def _kind(source: Path, engine: str) -> ServedKind:
    """Return what the file or folder is; raises ``UsageError`` for what no server here takes."""
    kinds: dict[str, ServedKind] = {"": "savedmodel", ".onnx": "onnx"}
    kinds |= {".plan": "tensorrt", ".engine": "tensorrt"}
    kind = kinds.get("" if source.is_dir() else source.suffix.lower())
    if kind is None:
        target = "onnx" if engine == "triton" else "savedmodel"
        raise UsageError(
            f"{source} is a {source.suffix} file, which no server elsewhere takes",
            remedy=f"export it first: tfdyno export {source.name} --to {target} --output DIR",
        )
    return kind


def _sized(path: Path) -> dict[str, Any]:
    """Return what a sizing says of batches and replicas; raises ``UsageError``."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON", why=str(error)) from None
    found = document.get("autoscaling") if isinstance(document, dict) else None
    if not isinstance(found, dict):
        why = "it holds no autoscaling: the sizing found nothing feasible, or is something else"
        remedy = "make it with tfdyno advise MODEL --scenario serve --json"
        raise UsageError(f"{path} cannot be used for replicas", why=why, remedy=remedy)
    try:
        return {
            "max_batch_size": int(found["max_batch_size"]),
            "max_delay_s": float(found["max_delay_s"]),
            "replicas_min": int(found["min_replicas"]),
            "replicas_max": int(found["max_replicas"]),
            "target_requests_per_s": float(found["target_requests_per_s"]),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} lacks a key of autoscaling", why=str(error)) from None


def _model_place(plan: ServingPlan) -> str:
    """Return where the model lies in the folder: as the server, or the storage, wants it."""
    if plan.engine != "rayserve" and plan.server == "triton":
        from tfdyno.render.serving.triton import model_file

        return model_file(plan)
    return f"models/{plan.version}" if plan.engine == "kserve" else (
        f"models/{plan.name}/{plan.version}"
    )  # fmt: skip


def _notes(plan: ServingPlan) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if plan.engine != "rayserve" and plan.server == "triton":
        from tfdyno.render.serving.triton import notes

        found = notes(plan)
    if plan.engine in ("kserve", "kubernetes"):
        where = plan.storage or "the image"
        found = (f"models holds what {where} has to hold", *found)
    return found


def check_output(output: Path) -> None:
    """Refuse a folder that is there, or has no place; raises ``UsageError``."""
    if output.exists():
        raise UsageError(f"{output} is there already", remedy="name a new folder")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {output.absolute().parent}")


def written(output: Path, files: dict[str, str], source: Path | None, place: str) -> None:
    """Write beside, then give it its name.

    Args:
        output: The folder.
        files: Texts by their path in it.
        source: The model; None: none is put there.
        place: Where it goes.

    Raises:
        ToolError: There is no room.
    """
    parent = output.absolute().parent
    with (
        OSErrorsAs(ToolError, f"cannot write {output}"),
        tempfile.TemporaryDirectory(dir=parent, prefix=f".{output.name}.") as part,
    ):
        made = Path(part) / output.name
        for path, text in files.items():
            target = made / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        if source is not None:
            (made / place).parent.mkdir(parents=True, exist_ok=True)
            copy_contents(source, made / place)
        made.rename(output)
