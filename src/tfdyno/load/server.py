"""What a server says of itself: metadata, its own counts of batches, and which process it is."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import urllib.request
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import psutil

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import MIB
from tfdyno.core.measure.load import ServerFacts

if TYPE_CHECKING:
    from tfdyno.core.measure.load_url import LoadUrl

ANSWER_S = 20.0
"""The time for metadata and metrics."""
MOST_BYTES = 16 * MIB
_DTYPES = {
    "DT_FLOAT": "float32", "DT_DOUBLE": "float64", "DT_HALF": "float16", "DT_BFLOAT16": "bfloat16",
    "DT_INT8": "int8", "DT_INT16": "int16", "DT_INT32": "int32", "DT_INT64": "int64",
    "DT_UINT8": "uint8", "DT_UINT16": "uint16", "DT_UINT32": "uint32", "DT_UINT64": "uint64",
    "DT_BOOL": "bool", "DT_STRING": "string",
    "FP32": "float32", "FP64": "float64", "FP16": "float16", "BF16": "bfloat16",
    "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "BOOL": "bool", "BYTES": "string",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """An input or output of a signature; a size of -1 is any, the first is the batch."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def words(self) -> str:
        """``image float32[-1,28,28,1]``."""
        return f"{self.name} {self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What the metadata of a model says."""

    facts: ServerFacts
    inputs: tuple[TensorFacts, ...] = ()
    outputs: tuple[TensorFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCounts:
    """A server's own counts of batches since it started; empty: it has none."""

    by_rows: dict[int, int] = field(default_factory=dict)
    """Rows, or upper bound of rows, -> batches."""
    are_bounds: bool = False
    rows: int = 0
    count: int = 0


class ServerLook:
    """Asks a server for all that is not a prediction."""

    def __init__(self, url: LoadUrl, *, token: str, tls: ssl.SSLContext | None) -> None:
        self.url, self.token, self.tls = url, token, tls

    def model(self, *, needed: bool) -> Model:
        """Return the model by its metadata.

        Args:
            needed: Whether its inputs must be known; else a server without metadata will do.

        Raises:
            UsageError: Nobody listens, the token is wrong, there is no such model or, where it
                is needed, no metadata.
        """
        status, body, server = self._get(self.url.metadata_path)
        if status in (401, 403):
            raise UsageError(f"{self.url.origin} refuses the token", why=f"it answered {status}",
                             remedy="give the right one with --token")  # fmt: skip
        if status != 200:
            if needed:
                raise UsageError(
                    f"{self.url.origin} does not tell what {self.url.model} takes",
                    why=f"{self.url.metadata_path} answered {status}{_said(body)}",
                    remedy="check the model's name, or give the requests with --data FILE.json",
                )
            facts = ServerFacts(route=self.url.route, model=self.url.model, platform=server)
            return Model(facts=self._with_processes(facts))
        return self._read(body, server)

    def batches(self, metrics_url: str = "") -> BatchCounts:
        """Return batches so far, by the server's own count; of a server that has none, none.

        Triton tells each size in ``/v2/models/NAME/stats``; a Prometheus page may hold a
        histogram of sizes.
        """
        try:
            if metrics_url:
                with urllib.request.urlopen(metrics_url, timeout=ANSWER_S) as answer:
                    return metrics_batches(answer.read(MOST_BYTES).decode(), self.url.model)
            if self.url.route == "kserve-v2":
                status, body, _ = self._get(f"{self.url.model_path}/stats")
                if status == 200 and (found := triton_batches(json.loads(body))).count:
                    return found
            status, body, _ = self._get("/metrics")
            text = body.decode("utf-8", "replace") if status == 200 else ""
            return metrics_batches(text, self.url.model)
        except (OSError, UsageError, ValueError, KeyError, TypeError, AttributeError):
            return BatchCounts()

    def _read(self, body: bytes, server: str) -> Model:
        try:
            raw = json.loads(body)
            is_v1 = self.url.route == "tensorflow-serving"
            version, inputs, outputs = (_tensorflow if is_v1 else _kserve)(raw)
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            what = f"{self.url.origin}{self.url.metadata_path} is no metadata of a model"
            raise UsageError(what, why=f"{type(error).__name__}: {error}") from None
        facts = ServerFacts(
            route=self.url.route,
            model=self.url.model,
            version=version,
            platform=server,
            inputs=tuple(one.words for one in inputs),
            outputs=tuple(one.words for one in outputs),
        )
        return Model(facts=self._with_processes(facts), inputs=inputs, outputs=outputs)

    def _with_processes(self, facts: ServerFacts) -> ServerFacts:
        return replace(facts, processes=listeners(self.url.port) if self.url.is_local else ())

    def _get(self, path: str) -> tuple[int, bytes, str]:
        """Return status, body and ``Server`` header; raises ``UsageError`` where nobody answers."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        place = (self.url.host, self.url.port)
        one = (
            http.client.HTTPSConnection(*place, timeout=ANSWER_S, context=self.tls)
            if self.tls
            else http.client.HTTPConnection(*place, timeout=ANSWER_S)
        )
        try:
            one.request("GET", path, headers={**headers, "Host": self.url.netloc})
            answer = one.getresponse()
            return answer.status, answer.read(MOST_BYTES), answer.getheader("Server") or ""
        except ssl.SSLError as error:
            remedy = "give its authority with --ca FILE, or --insecure"
            what = f"{self.url.origin} is not trusted"
            raise UsageError(what, why=str(error), remedy=remedy) from None
        except (OSError, http.client.HTTPException) as error:
            told = error.strerror if isinstance(error, OSError) else ""
            why = told or str(error) or type(error).__name__
            raise UsageError(f"no server answers at {self.url.origin}", why=why,
                             remedy="start it, or check host and port") from None  # fmt: skip
        finally:
            one.close()


def listeners(port: int) -> tuple[str, ...]:
    """Return the processes of this machine that listen at a port, as ``ServerFacts.processes``.

    Processes of other users cannot be seen and are left out; on some systems none can.
    """
    try:
        found = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return ()
    pids = {
        one.pid
        for one in found
        if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid
    }
    return tuple(sorted(name for pid in pids if (name := _process(pid))))


def _process(pid: int) -> str:
    try:
        return f"{pid}@{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return ""


def _tensorflow(
    raw: dict[str, Any],
) -> tuple[str, tuple[TensorFacts, ...], tuple[TensorFacts, ...]]:
    """Read TensorFlow Serving's metadata: version, inputs, outputs, ``serving_default`` first."""
    signatures = raw["metadata"]["signature_def"]["signature_def"]
    chosen = signatures.get("serving_default") or next(iter(signatures.values()))
    sides = []
    for side in ("inputs", "outputs"):
        tensors = []
        for name, one in chosen[side].items():
            dims = one.get("tensor_shape", {}).get("dim", [])
            shape = tuple(int(dim["size"]) for dim in dims)
            tensors.append(TensorFacts(name=name, dtype=_DTYPES[one["dtype"]], shape=shape))
        sides.append(tuple(tensors))
    return str(raw["model_spec"].get("version", "")), sides[0], sides[1]


def _kserve(raw: dict[str, Any]) -> tuple[str, tuple[TensorFacts, ...], tuple[TensorFacts, ...]]:
    """Return versions, inputs and outputs of KServe v2's metadata."""
    sides = [
        tuple(
            TensorFacts(name=one["name"], dtype=_DTYPES[one["datatype"]],
                        shape=tuple(int(size) for size in one["shape"]))
            for one in raw[side]
        )
        for side in ("inputs", "outputs")
    ]  # fmt: skip
    return ",".join(map(str, raw.get("versions") or ())), sides[0], sides[1]


def triton_batches(raw: dict[str, Any]) -> BatchCounts:
    """Read Triton's statistics of a model: executions by batch size, over its versions."""
    found: dict[int, int] = {}
    for version in raw["model_stats"]:
        for one in version.get("batch_stats") or ():
            size = int(one["batch_size"])
            found[size] = found.get(size, 0) + int(one["compute_infer"]["count"])
    return BatchCounts(by_rows=found, rows=sum(size * n for size, n in found.items()),
                       count=sum(found.values()))  # fmt: skip


_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)", re.M)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def metrics_batches(text: str, model: str) -> BatchCounts:
    """Return the histogram of batch sizes of a Prometheus page, or Triton's two counters.

    A histogram counts whose name has ``batch`` and ``rows`` or ``size``; samples with a label
    ``model`` (``model_name``) of another model are left out, versions are added up.
    """
    bounds: dict[float, float] = {}
    sums = {"sum": 0.0, "count": 0.0, "rows": 0.0, "executions": 0.0}
    for match in _SAMPLE.finditer(text):
        name, labels = match["name"], dict(_LABEL.findall(match["labels"] or ""))
        if labels.get("model", labels.get("model_name", model)) != model:
            continue
        value = float(match["value"])
        if name == "nv_inference_count":
            sums["rows"] += value
        elif name == "nv_inference_exec_count":
            sums["executions"] += value
        elif "batch" in name and ("rows" in name or "size" in name):
            if name.endswith("_bucket") and "le" in labels:
                bound = float(labels["le"])
                bounds[bound] = bounds.get(bound, 0.0) + value
            elif name.endswith(("_sum", "_count")):
                sums[name.rpartition("_")[2]] += value
    if bounds:
        return BatchCounts(by_rows=_apart(bounds), are_bounds=True, rows=round(sums["sum"]),
                           count=round(sums["count"]))  # fmt: skip
    return BatchCounts(rows=round(sums["rows"]), count=round(sums["executions"]))


def _apart(bounds: dict[float, float]) -> dict[int, int]:
    """Take cumulated buckets apart; what is above all bounds stands under -1."""
    found, before = {}, 0.0
    for bound, upto in sorted(bounds.items()):
        found[-1 if bound == float("inf") else int(bound)] = round(upto - before)
        before = upto
    return found


def between(before: BatchCounts, after: BatchCounts) -> BatchCounts:
    """Return what was counted between two looks; nothing where the counts went back."""
    rows = {key: count - before.by_rows.get(key, 0) for key, count in after.by_rows.items()}
    if after.count < before.count or any(count < 0 for count in rows.values()):
        return BatchCounts()
    return BatchCounts(
        by_rows={key: count for key, count in rows.items() if count or after.are_bounds},
        are_bounds=after.are_bounds,
        rows=after.rows - before.rows,
        count=after.count - before.count,
    )


def _said(body: bytes) -> str:
    text = " ".join(body[:200].decode("utf-8", "replace").split())
    return f": {text}" if text else ""
