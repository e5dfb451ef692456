"""Can these nodes train together? Each tells of itself, all are tried, worker 0 judges."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.base.settings import positive
from tfdyno.core.cluster.cluster import ProcessRank, cluster_of
from tfdyno.core.cluster.cluster_facts import (
    AllReduce,
    Call,
    ClockReading,
    ClusterFacts,
    ClusterReport,
    Exchange,
    FolderSpeed,
    LinkRate,
    NodeFacts,
    SharedView,
)
from tfdyno.engines.rendezvous import rendezvous
from tfdyno.engines.rendezvous.rounds import Round, take_part
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.doctor._cluster_judge import judge
from tfdyno.jobs.doctor._cluster_member import PREFIX, Member
from tfdyno.jobs.launch.node import SHARED_S, SHARED_VARIABLE
from tfdyno.model.measure.clock_offset import clock_offset

if TYPE_CHECKING:
    from collections.abc import Mapping

SPOKEN = {"check of a cluster": "1"}
"""What has to be the same for the processes to understand each other; versions are judged later."""
CLOCK_EXCHANGES = 16
_VIEWS = {"new": "seen_s", "replaced": "replaced_s", "appended": "appended_s"}
FILE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """What is asked of a cluster."""

    output: str = "."
    """Folder of the run, which all nodes share."""
    nodes: int = 0
    """0: as many as the engine tells of."""
    gpus_per_node: int | None = None
    """That each has to have; None: whatever there is."""
    rank: int | None = None
    port: int = 0
    wait_s: float = rendezvous.WAIT_S
    is_quick: bool = False
    """Whether all-reduces are left out, for which TensorFlow is started."""
    link: str = ""
    """Slug of the network between the nodes; empty: as their interfaces tell."""


def doctor_cluster(
    asked: ClusterRequest,
    *,
    environment: Mapping[str, str],
    progress: Callable[[str], None] = silent,
) -> ClusterReport | None:
    """Take part in the check as the process that the engine says this one is.

    Args:
        asked: What is asked.
        environment: Variables of the process.
        progress: Told what goes on.

    Returns:
        The report, of worker 0; None of all others.

    Raises:
        UsageError: Nothing tells of other nodes, or what is told does not fit together.
        ToolError: Worker 0 does not answer.
    """
    process = cluster_of(environment, nodes=asked.nodes, rank=asked.rank, port=asked.port)
    if process is None:
        raise UsageError(
            "nothing tells of other nodes",
            remedy="let the engine start it on each node, as srun tfdyno doctor --cluster, or try "
            "it here with --nodes 2",
        )
    folder = Path(asked.output)
    member = Member(process, folder, environment, progress=progress)
    progress(f"worker {process.rank} of {process.size}, as {process.told_by} says")
    with contextlib.closing(member):
        if process.rank == 0:
            limit_s = positive(environment.get(SHARED_VARIABLE) or SHARED_S, SHARED_VARIABLE)
            check = _Check(process, member, asked, progress, limit_s)
            facts = _led(check)
            return judge(facts, link=asked.link)
        rendezvous.join_rendezvous(
            process,
            SPOKEN,
            lambda _message: None,
            tell=progress,
            wait_s=asked.wait_s,
            stay=lambda line, _message: take_part(line, member.act),
        )
        return None


def _led(check: _Check) -> ClusterFacts:
    """Return all that worker 0 finds out with the others; who does not come is a part of it."""
    member = check.member
    try:
        rendezvous.serve_rendezvous(
            check.process, SPOKEN, {}, tell=check.progress, wait_s=check.asked.wait_s,
            stay=lambda lines: check.run(Round(lines, member.act)),
        )  # fmt: skip
    except TfdynoError as error:
        own = check.nodes or (_node(member.act("look", {})),)
        return replace(check.facts(), nodes=own, missed=str(error))
    return check.facts()


def _node(plain: object) -> NodeFacts:
    return from_builtins(plain, NodeFacts, where="what a node tells of itself")


@dataclass(slots=True)
class _Check:
    """What is found step by step, so that it is kept where a later step fails."""

    process: ProcessRank
    member: Member
    asked: ClusterRequest
    progress: Callable[[str], None]
    seen_limit_s: float
    nodes: tuple[NodeFacts, ...] = ()
    clocks: tuple[ClockReading, ...] = ()
    calls: list[Call] = field(default_factory=list)
    views: list[SharedView] = field(default_factory=list)
    speeds: list[FolderSpeed] = field(default_factory=list)
    links: list[LinkRate] = field(default_factory=list)
    all_reduces: list[AllReduce] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def facts(self) -> ClusterFacts:
        """Return all that was found so far."""
        return ClusterFacts(
            size=self.process.size,
            wanted_cards=self.asked.gpus_per_node or 0,
            nodes=self.nodes,
            clocks=self.clocks,
            calls=tuple(self.calls),
            views=tuple(self.views),
            speeds=tuple(self.speeds),
            links=tuple(self.links),
            all_reduces=tuple(self.all_reduces),
            notes=tuple(self.notes),
        )

    def run(self, company: Round) -> None:
        """Run every step in turn; the others go when it ends."""
        try:
            self._look(company)
            self.progress("comparing clocks")
            self.clocks = tuple(self._clock(company, rank) for rank in company.ranks[1:])
            self._call(company)
            self._share(company)
            if self.asked.is_quick:
                self.notes.append("all-reduces: not measured, because of --quick")
            else:
                self._reduce(company)
        finally:
            company.end()

    def _look(self, company: Round) -> None:
        self.progress("asking all nodes what they are")
        found = _good(company.ask_all("look"))
        self.nodes = tuple(_node(found[rank]) for rank in company.ranks)

    def _clock(self, company: Round, rank: int) -> ClockReading:
        exchanges = []
        for _ in range(CLOCK_EXCHANGES):
            asked_s = time.time()
            answered_s = float(company.ask(rank, "clock"))
            exchanges.append((asked_s, answered_s, time.time()))
        offset_s, uncertainty_s = clock_offset(exchanges)
        return ClockReading(rank=rank, offset_s=offset_s, uncertainty_s=uncertainty_s)

    def _call(self, company: Round) -> None:
        """Let every node call every other one, then all send to the next one of a ring."""
        self.progress("trying the ports between all nodes")
        token = secrets.token_hex(8)
        heard = company.ask_all("listen", lambda _rank: {"token": token})
        deaf = {rank: error for rank, error in heard.items() if isinstance(error, TfdynoError)}
        self.notes += [f"worker {rank} cannot listen: {error}" for rank, error in deaf.items()]
        ports = {str(rank): port for rank, port in heard.items() if rank not in deaf}
        called = company.ask_all("call", lambda _rank: {"ports": ports})
        for rank, found in called.items():
            if isinstance(found, TfdynoError):
                self.notes.append(f"worker {rank} could not call the others: {found}")
                continue
            self.calls += [from_builtins(one, Call, where="a call") for one in found]
        if not deaf and all(call.connect_s is not None for call in self.calls):
            self.progress("measuring what the connections carry")
            for rank, rate in company.ask_all("stream").items():
                if isinstance(rate, TfdynoError):
                    self.notes.append(f"worker {rank}: {rate}")
                    continue
                receiver = (rank + 1) % self.process.size
                self.links.append(LinkRate(sender=rank, receiver=receiver, bytes_per_s=rate))
        company.ask_all("quiet")

    def _share(self, company: Round) -> None:
        """Let worker 0 write and all others look, then the other way round."""
        self.progress("looking whether all nodes share the folder")
        folder = Path(self.asked.output).absolute()
        made = not folder.exists()
        stem = f"{PREFIX}{secrets.token_hex(4)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._views(company, stem)
            self._speeds(company, stem)
        except (OSError, TfdynoError) as error:
            self.notes.append(f"shared folder {folder}: {error}")
        finally:
            company.ask_all("write", lambda _rank: {"name": stem, "text": "", "how": "gone"})
            if made:
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def _views(self, company: Round, stem: str) -> None:
        """Let all look at once for what 0 writes, and 0 for what each other writes."""
        self.views += self._seen(company, stem, 0)
        seen = [view.reader for view in self.views if view.seen_s is not None]
        for rank in seen:  # the others do not share it, and 0 would wait in vain
            self.views += self._seen(company, stem, rank)

    def _seen(self, company: Round, stem: str, writer: int) -> list[SharedView]:
        name, text = f"{stem}-{writer}", secrets.token_hex(8)
        readers = company.ranks[1:] if writer == 0 else (0,)
        seen: dict[int, dict[str, float | None]] = {reader: {} for reader in readers}
        error = ""
        steps = (("new", text, text), ("replaced", f"{text}2", f"{text}2"),
                 ("appended", "3", f"{text}23"))  # fmt: skip
        for how, added, whole in steps:
            try:
                company.ask(writer, "write", name=name, text=added, how=how)
            except TfdynoError as failure:
                error = str(failure)
                break
            for reader, taken_s in self._looked(company, writer, name, whole).items():
                if reader in seen:
                    seen[reader][f"{_VIEWS[how]}"] = taken_s
        return [
            SharedView(writer=writer, reader=one, error=error, **found)
            for one, found in seen.items()
        ]

    def _looked(
        self, company: Round, writer: int, name: str, whole: str
    ) -> dict[int, float | None]:
        given = {"name": name, "text": whole, "limit_s": self.seen_limit_s}
        if writer:
            return {0: company.ask(0, "see", **given)}
        found = company.ask_all("see", lambda _rank: given)
        return {r: None if isinstance(x, TfdynoError) else x for r, x in found.items()}

    def _speeds(self, company: Round, stem: str) -> None:
        """Write one after another, as a checkpoint is; each then reads what the next wrote."""
        wrote: dict[int, FolderSpeed] = {}
        for rank in company.ranks:
            self.progress(f"worker {rank} writes {FILE_BYTES >> 20} MiB to the folder")
            speed = FolderSpeed(rank=rank, size_bytes=FILE_BYTES)
            try:
                name = f"{stem}-speed-{rank}"
                rate = company.ask(rank, "speed", name=name, size_bytes=FILE_BYTES)
                wrote[rank] = replace(speed, write_bytes_per_s=rate)
            except TfdynoError as error:
                wrote[rank] = replace(speed, error=str(error))
        for rank, speed in wrote.items():
            other = (rank + 1) % self.process.size
            try:
                rate = company.ask(rank, "read", name=f"{stem}-speed-{other}")
                self.speeds.append(replace(speed, read_bytes_per_s=rate))
            except TfdynoError as error:
                self.speeds.append(replace(speed, error=speed.error or str(error)))

    def _reduce(self, company: Round) -> None:
        has_cards = all(node.cards for node in self.nodes)
        if has_cards and any(len(node.cards) > 1 for node in self.nodes):
            self._reduced(company, "cards")
        unreached = [call for call in self.calls if call.port == "own" and call.connect_s is None]
        if unreached or any(note.endswith("taken") for note in self.notes):
            self.notes.append("all-reduces between nodes: not measured, as a port is not reached")
            return
        self._reduced(company, "nodes")

    def _reduced(self, company: Round, between: Exchange) -> None:
        self.progress(f"measuring all-reduces between {between}")
        has_cards = all(node.cards for node in self.nodes)
        given = {"between": between, "has_cards": has_cards}
        for rank, found in company.ask_all("all_reduce", lambda _rank: given).items():
            if isinstance(found, TfdynoError):
                one = AllReduce(between=between, rank=rank, error=str(found))
            else:
                one = from_builtins(found, AllReduce, where=f"what worker {rank} measured")
            self.all_reduces.append(one)


def _good(answers: Mapping[int, Any]) -> dict[int, Any]:
    """Return the answers; raises the first error among them with its worker."""
    for rank, answer in answers.items():
        if isinstance(answer, TfdynoError):
            what = f"worker {rank} could not look at itself"
            raise ToolError(what, why=str(answer))
    return dict(answers)
