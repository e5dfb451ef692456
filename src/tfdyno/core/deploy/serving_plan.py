"""How a model is to be served by a server that runs elsewhere: what its files are made from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tfdyno.core.base.errors import UsageError

Engine = Literal["tfserving", "triton", "kserve", "kubernetes", "rayserve"]
ENGINES: tuple[Engine, ...] = ("tfserving", "triton", "kserve", "kubernetes", "rayserve")
RENDERED: tuple[str, ...] = (*ENGINES, "vllm")
"""As well what serves text: its plan is ``core/deploy/language_model``'s."""
ServedKind = Literal["savedmodel", "onnx", "tensorrt"]
Server = Literal["tfserving", "triton"]
CLAIM = "pvc://"
"""What stands in front of a PersistentVolumeClaim, as KServe writes it: ``pvc://NAME/folder``."""
_DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
"""RFC 1035, as Kubernetes wants the name of a Service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """One model behind one server, in as many replicas as are needed."""

    engine: Engine
    name: str
    kind: ServedKind
    version: int = 1
    max_batch_size: int = 64
    max_delay_s: float = 0.002
    """That the first sample of a batch waits for others."""
    max_queue: int = 1024
    """Requests that wait in one replica."""
    deadline_s: float = 10.0
    port: int = 8501
    """The port of REST, where the files publish it."""
    replicas_min: int = 1
    replicas_max: int = 1
    target_requests_per_s: float = 0.0
    """The rate of one replica above which another is started; 0: not known."""
    cpus: int = 2
    """CPUs of one replica."""
    memory_bytes: int = 4 << 30
    """Memory of one replica."""
    gpus: int = 0
    """GPUs of one replica."""
    image: str = ""
    """Container to take in place of the pinned one."""
    storage: str = ""
    """Where a cluster finds the model: ``pvc://NAME/folder``, for KServe also ``s3://…``."""
    namespace: str = ""

    @property
    def server(self) -> Server:
        """What answers: TensorFlow Serving takes SavedModels, Triton the rest."""
        if self.engine in ("triton", "tfserving"):
            return "triton" if self.engine == "triton" else "tfserving"
        return "tfserving" if self.kind == "savedmodel" else "triton"

    @property
    def scales(self) -> bool:
        """Whether the number of replicas may change."""
        return self.replicas_max > self.replicas_min

    @property
    def resource_name(self) -> str:
        """The name as Kubernetes takes it."""
        return dns_label(self.name)


def dns_label(name: str) -> str:
    """Write a name in lower case, ``-`` for what Kubernetes refuses; raises ``UsageError``."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if found and found[0].isdigit():
        found = f"m-{found}"
    if not _DNS_LABEL.fullmatch(found):
        raise UsageError(
            f"'{name}' makes no name in Kubernetes",
            why="at most 63 letters, digits and '-' do, a letter first",
            remedy="choose one with --name",
        )
    return found


def claim_of(storage: str) -> tuple[str, str]:
    """Name and folder of a claim, ``pvc://NAME/folder``; raises ``UsageError``."""
    name, _, folder = storage.removeprefix(CLAIM).partition("/")
    if not storage.startswith(CLAIM) or not _DNS_LABEL.fullmatch(name):
        raise UsageError(
            f"--storage {storage} names no claim",
            why="a Deployment mounts a PersistentVolumeClaim",
            remedy="write pvc://NAME/folder, let KServe fetch the model (--render kserve), or put "
            "it into an image of your own (--image) and leave --storage out",
        )
    return name, folder.strip("/")


def replicas(text: str) -> tuple[int, int]:
    """Read ``3`` or ``2:10`` as the fewest and the most; raises ``UsageError``."""
    fewest, _, most = text.partition(":")
    try:
        found = int(fewest), int(most or fewest)
    except ValueError:
        found = (0, 0)
    if not 1 <= found[0] <= found[1] <= 10_000:
        raise UsageError(f"--replicas {text} cannot be read", remedy="write 3, or 2:10")
    return found
