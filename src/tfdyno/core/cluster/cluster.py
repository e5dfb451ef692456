"""Which of several processes this one is, and where the others are, from what an engine tells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.hostlist import expand_hosts
from tfdyno.core.base.settings import MOST_PORT

WORKERS, ADDRESS, RANK = "TFDYNO_WORKERS", "TFDYNO_ADDRESS", "TFDYNO_RANK"
"""Variables of tfdyno's own: all addresses, a pattern with ``{rank}``, and the rank."""
TOLD_BY = (
    WORKERS, ADDRESS, RANK, "TF_CONFIG", "SKYPILOT_NODE_RANK", "SM_HOSTS", "JOB_COMPLETION_INDEX",
    "SLURM_PROCID",
)  # fmt: skip
"""Variables that tell a process that it is one of several."""
LOOPBACK = "127.0.0.1"
NO_CARD = "-1"
"""In ``CUDA_VISIBLE_DEVICES``."""
PORT = 12355
SLURM_PORTS = (15_000, 10_000)
"""The first one and how many: jobs that share a node have ports of their own."""
Variables = Mapping[str, str]
_HOST = re.compile(r"[A-Za-z0-9_.-]+|\[[A-Za-z0-9_.:%-]+\]")
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRank:
    """A process of a cluster whose members are all alike."""

    rank: int
    addresses: tuple[str, ...]
    """``host:port`` of every process by rank."""
    told_by: str
    """What it was read from, in words."""

    def __post_init__(self) -> None:
        """Refuse a rank or an address that cannot be; raises ``UsageError``."""
        count = len(self.addresses)
        if not 0 <= self.rank < count:
            why = f"{self.told_by} names {count} process{'es' * (count != 1)}, counted from 0"
            raise UsageError(f"there is no rank {self.rank}", why=why)
        for address in self.addresses:
            host, _, port = address.rpartition(":")
            is_port = bool(_NUMBER.fullmatch(port)) and 1 <= int(port) <= MOST_PORT
            if not _HOST.fullmatch(host) or not is_port:
                remedy = f"write host:port, a port from 1 to {MOST_PORT}"
                raise UsageError(f"'{address}' of {self.told_by} is no address", remedy=remedy)
        twice = sorted(one for one in set(self.addresses) if self.addresses.count(one) > 1)
        if twice:
            first, second = [r for r, one in enumerate(self.addresses) if one == twice[0]][:2]
            raise UsageError(
                f"worker {first} and worker {second} have the same address {twice[0]}",
                why=f"so {self.told_by} says",
                remedy="give each process a host or a port of its own",
            )

    @property
    def size(self) -> int:
        """How many processes there are."""
        return len(self.addresses)

    @property
    def own(self) -> str:
        """This one's address."""
        return self.addresses[self.rank]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What an engine says: a rank, and hosts where it names them."""

    rank: int
    hosts: tuple[str, ...] = ()
    """The hosts, with a port or without."""
    size: int = 0
    by: str
    port: int = PORT


def cluster_of(
    environment: Variables, *, nodes: int = 0, rank: int | None = None, port: int = 0
) -> ProcessRank | None:
    """Return the rank of this process and where all listen; None: it is alone.

    Given addresses (``TFDYNO_WORKERS``, ``TFDYNO_ADDRESS``) come before those of an engine:
    ``TF_CONFIG``, Slurm, an indexed Job of Kubernetes, SkyPilot, SageMaker.

    Args:
        environment: The variables of the process.
        nodes: How many there have to be; 0: as many as are told of.
        rank: This one's, where it is given by hand.
        port: Of every process where the engine names hosts alone; 0: the usual one.

    Raises:
        UsageError: What is told does not fit together, or a rank is told without addresses.
    """
    told = next(filter(None, (read(environment) for read in _READERS)), None)
    by_hand = environment.get(RANK, "") if rank is None else str(rank)
    if by_hand:
        by = RANK if rank is None else "--rank"
        told = _Told(rank=_number(by_hand, by), hosts=told.hosts if told else (), by=by,
                     size=told.size if told else 0)  # fmt: skip
    count = nodes or (told.size or len(told.hosts) if told else 0)
    addresses, by = _given(environment, count, port or PORT)
    if told and not addresses and told.hosts:
        addresses, by = _with_ports(told.hosts, port or told.port), told.by
    if not told and (addresses or count > 1):
        what = "nothing says which of the processes this one is"
        raise UsageError(what, why=f"it is one of {count or len(addresses)}",
                         remedy=f"set {RANK}, or let the engine start it")  # fmt: skip
    if not told:
        return None
    if not addresses and count <= 1 and told.rank == 0:
        return None
    if not addresses:
        what = (
            f"{told.by} says that this is rank {told.rank}, and nothing says where the others are"
        )
        raise UsageError(what, remedy=f"set {WORKERS}=host:port,… or {ADDRESS} with {{rank}} in it")
    if nodes and len(addresses) != nodes:
        what = f"{by} names {len(addresses)} process{'es' * (len(addresses) != 1)}"
        remedy = "give both the same number"
        raise UsageError(what, why=f"the plan has {nodes} nodes", remedy=remedy)
    if len(addresses) == 1 and told.rank == 0:
        return None
    return ProcessRank(rank=told.rank, addresses=addresses, told_by=by)


def tf_config_of(process: ProcessRank) -> str:
    """Write ``TF_CONFIG`` of a process among workers that are all alike."""
    task = {"type": "worker", "index": process.rank}
    return json.dumps({"cluster": {"worker": list(process.addresses)}, "task": task})


def host_of(address: str) -> str:
    """Return the host of ``host:port``, an IPv6 address without its brackets."""
    return address.rpartition(":")[0].strip("[]")


def port_of(address: str) -> int:
    """Return the port of ``host:port``."""
    return int(address.rpartition(":")[2])


def _given(environment: Variables, count: int, port: int) -> tuple[tuple[str, ...], str]:
    """Return the addresses of tfdyno's own variables."""
    if listed := environment.get(WORKERS, "").strip():
        hosts = tuple(part.strip() for part in listed.split(",") if part.strip())
        return _with_ports(hosts, port), WORKERS
    pattern = environment.get(ADDRESS, "").strip()
    if pattern and count:
        if "{rank}" not in pattern and count > 1:
            what = f"{ADDRESS} {pattern} is the same for all"
            raise UsageError(what, remedy="write {rank} where they differ")
        hosts = tuple(pattern.replace("{rank}", str(rank)) for rank in range(count))
        return _with_ports(hosts, port), ADDRESS
    return (), ""


def _with_ports(hosts: tuple[str, ...], port: int) -> tuple[str, ...]:
    """Give processes of one host ports that follow each other."""
    met: dict[str, int] = {}
    found = []
    for host in hosts:
        bare = host.count(":") > 1 and not host.startswith("[")
        if not bare and ":" in host.rpartition("]")[2]:
            found.append(host)
            continue
        name = f"[{host}]" if bare else host
        found.append(f"{name}:{port + met.get(name, 0)}")
        met[name] = met.get(name, 0) + 1
    return tuple(found)


def _of_tf_config(environment: Variables) -> _Told | None:
    text = environment.get("TF_CONFIG", "").strip()
    if not text:
        return None
    try:
        given = json.loads(text)
        cluster, task = given.get("cluster") or {}, given.get("task") or {}
        kinds = {str(kind): _listed(hosts) for kind, hosts in cluster.items() if hosts}
        kind, index = str(task.get("type", "worker")), int(task.get("index", 0))
    except (ValueError, AttributeError, TypeError):
        raise UsageError("TF_CONFIG cannot be read", why="it is no JSON of a cluster and a task")\
            from None  # fmt: skip
    if not kinds:
        return None
    others = sorted(set(kinds) - {"chief", "worker"})
    if others or kind not in ("chief", "worker"):
        remedy = "train parameter servers with tfdyno train --set strategy=ps"
        what = f"TF_CONFIG has a task of kind {(others or [kind])[0]}"
        raise UsageError(what, why="workers alone train together here", remedy=remedy)
    chiefs = kinds.get("chief", ())
    rank = index if kind == "chief" else index + len(chiefs)
    return _Told(rank=rank, hosts=(*chiefs, *kinds.get("worker", ())), by="TF_CONFIG")


def _listed(hosts: object) -> tuple[str, ...]:
    """Return the addresses of one kind of task; raises ``TypeError`` where they are no texts."""
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise TypeError
    return tuple(hosts)


def _of_slurm(environment: Variables) -> _Told | None:
    if "SLURM_PROCID" not in environment:
        return None
    listed = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", "")
    size = _number(environment.get("SLURM_NTASKS", "0"), "SLURM_NTASKS")
    hosts = expand_hosts(listed) if listed else ()
    per_node = environment.get("SLURM_STEP_TASKS_PER_NODE", "")
    hosts = _each(hosts, per_node, size)
    first, many = SLURM_PORTS
    job = _number(environment.get("SLURM_JOB_ID", "0"), "SLURM_JOB_ID")
    rank = _number(environment["SLURM_PROCID"], "SLURM_PROCID")
    return _Told(rank=rank, hosts=hosts, size=size, by="Slurm", port=first + job % many)


def _each(hosts: tuple[str, ...], per_node: str, size: int) -> tuple[str, ...]:
    """Return each host as often as tasks run on it: ``2(x3),1``."""
    counts: list[int] = []
    for part in filter(None, per_node.split(",")):
        found = re.fullmatch(r"([0-9]{1,5})(?:\(x([0-9]{1,5})\))?", part)
        if not found:
            raise UsageError(f"SLURM_STEP_TASKS_PER_NODE {per_node} cannot be read")
        counts += [int(found[1])] * int(found[2] or 1)
    if len(counts) == len(hosts) and sum(counts) == size:
        return tuple(host for host, count in zip(hosts, counts, strict=True) for _ in range(count))
    return hosts


def _of_skypilot(environment: Variables) -> _Told | None:
    if "SKYPILOT_NODE_RANK" not in environment:
        return None
    hosts = tuple(environment.get("SKYPILOT_NODE_IPS", "").split())
    rank = _number(environment["SKYPILOT_NODE_RANK"], "SKYPILOT_NODE_RANK")
    return _Told(rank=rank, hosts=hosts, by="SkyPilot")


def _of_kubernetes(environment: Variables) -> _Told | None:
    if "JOB_COMPLETION_INDEX" not in environment:
        return None
    index = _number(environment["JOB_COMPLETION_INDEX"], "JOB_COMPLETION_INDEX")
    return _Told(rank=index, by="Kubernetes")


def _of_sagemaker(environment: Variables) -> _Told | None:
    if "SM_HOSTS" not in environment or "SM_CURRENT_HOST" not in environment:
        return None
    try:
        hosts = tuple(sorted(map(str, json.loads(environment["SM_HOSTS"]))))
        rank = hosts.index(environment["SM_CURRENT_HOST"])
    except (ValueError, TypeError):
        why = "SM_HOSTS is no list that holds SM_CURRENT_HOST"
        raise UsageError("the cluster of SageMaker cannot be read", why=why) from None
    return _Told(rank=rank, hosts=hosts, by="SageMaker")


def _number(text: str, what: str) -> int:
    if not _NUMBER.fullmatch(text.strip()):
        raise UsageError(f"{what} = '{text[:80]}' is no number of a process")
    return int(text)


_READERS: tuple[Callable[[Variables], _Told | None], ...] = (
    _of_tf_config, _of_skypilot, _of_sagemaker, _of_kubernetes, _of_slurm,
)  # fmt: skip
"""What was set by hand first; Slurm last, since its variables reach into what its jobs start."""
