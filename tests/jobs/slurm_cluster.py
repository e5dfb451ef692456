"""A real cluster of Slurm on this machine: a controller and two nodes, on loopback alone."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.engines.rendezvous.tf_config import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
PATIENCE_S = 60.0
CREDENTIAL_S = 12
"""A job that is queued again waits for so long: until its old credentials are void."""
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire={credential_s}
CredType=cred/munge
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=2,defer
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=10
JobRequeue=1
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=4000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=4000
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


@dataclass(frozen=True)
class Cluster:
    """What its programs need to know."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=False, cwd=cwd
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def job(self, number: str) -> dict[str, str]:
        """What Slurm says of a job."""
        return dict(re.findall(r"(\w+)=(\S*)", self.run("scontrol", "show", "job", number)))

    def wait(self, number: str, *states: str, limit_s: float, restarts: int = 0) -> dict[str, str]:
        """Until the job is in one of these states; fails where it never comes to it."""
        until_s = time.monotonic() + limit_s
        while True:
            job = self.job(number)
            if job["JobState"] in states and int(job["Restarts"]) >= restarts:
                return job
            assert time.monotonic() < until_s, job
            time.sleep(0.2)


def missing() -> str:
    """Why there can be no cluster here; empty where there can."""
    absent = [name for name in PROGRAMS if not program(name)]
    if absent:
        return f"{', '.join(absent)} of slurm-wlm and munge are not installed"
    return "" if os.geteuid() == 0 else "the daemons of the cluster are started as root"


def program(name: str) -> str:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Two nodes until the block ends."""
    ports = free_ports(3)
    host = os.uname().nodename
    for name in ("state", "spool-n1", "spool-n2"):
        (folder / name).mkdir()
    text = CONFIG.format(folder=folder, host=host, ports=ports, credential_s=CREDENTIAL_S)
    (folder / "slurm.conf").write_text(text)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    made = Cluster(folder)
    socket = f"--socket={folder}/munge.socket"
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    commands = [
        [program("munged"), "--foreground", "--force", socket, *files],
        [program("slurmctld"), "-D", "-i"],
        [program("slurmd"), "-D", "-N", "n1"],
        [program("slurmd"), "-D", "-N", "n2"],
    ]
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with (folder / f"{Path(command[0]).name}-{len(daemons)}.out").open("w") as out:
                daemons.append(
                    subprocess.Popen(command, env=made.environment, stdout=out, stderr=out)
                )
            wait_for(folder / "munge.socket")
        wait_for_nodes(made)
        yield made
    finally:
        with contextlib.suppress(AssertionError):
            made.run("scancel", "--user", "root")
            time.sleep(2.0)
        for daemon in reversed(daemons):
            daemon.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(60)
            daemon.kill()
            daemon.wait()


def wait_for(path: Path) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < until_s, path
        time.sleep(0.05)


def wait_for_nodes(made: Cluster) -> None:
    until_s = time.monotonic() + PATIENCE_S
    idle = ""
    while idle.count("idle") < 2:
        outputs = [path.read_text()[-500:] for path in made.folder.glob("*.out")]
        assert time.monotonic() < until_s, (idle, outputs)
        with contextlib.suppress(AssertionError):
            idle = made.run("sinfo", "--Node", "--noheader", "--format=%N %t")
        time.sleep(0.2)
