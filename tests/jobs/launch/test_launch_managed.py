"""What a managed service would start on its nodes, started here with what it tells them."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.render.plans import plan

from tfdyno.engines.rendezvous.tf_config import free_ports
from tfdyno.jobs.launch.launch import rendered
from tfdyno.render.launch.azureml import RUN
from tfdyno.store.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Value

pytestmark = [pytest.mark.tf, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
LIMIT_S = 600
GIVEN: dict[str, Any] = {
    "image": "train:1", "python": sys.executable, "options": ("--no-model",),
}  # fmt: skip
OPT = Path("/opt/ml")
NETWORK = "10.99.7"
ADDRESSES = "".join(f"{NETWORK}.{number} algo-{number}\\n" for number in (1, 2))


def missing() -> str:
    """What this machine lacks to play two containers; empty: nothing."""
    if os.geteuid():
        return "not root"
    lacking = [name for name in ("ip", "unshare") if not shutil.which(name)]
    if lacking:
        return f"no {lacking[0]}"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "true"], capture_output=True, check=False
    )
    return "no namespaces" if tried.returncode else ""


MISSING = missing()
SCRIPT = """
import keras
import numpy as np

x = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, x.sum(axis=1, keepdims=True), batch_size=16, epochs=2)
"""


def vertex(folder: Path, run: Path, **given: Any) -> list[list[str]]:
    """The command of each node, the chief's first; the bucket is a folder here."""
    extra = (("bucket", "gs://team"), ("machine", "n1-standard-8"))
    made = yaml.safe_load(rendered(plan("vertex", folder=str(folder), extra=extra, **given)))
    commands = []
    for pool in made["workerPoolSpecs"]:
        words = [word.replace("/gcs/team", str(run)) for word in pool["containerSpec"]["command"]]
        commands += [words] * pool["replicaCount"]
    return commands


def azureml(folder: Path, run: Path, **given: Any) -> list[list[str]]:
    """The command of each node; the datastore is a folder here."""
    extra = (("compute", "cluster"),)
    made = yaml.safe_load(rendered(plan("azureml", folder=str(folder), extra=extra, **given)))
    line = f"cd {shlex.quote(made['code'])} && {made['command'].replace(RUN, str(run / 'small'))}"
    return [["bash", "-c", line]] * made["resources"]["instance_count"]


def sagemaker(**given: Any) -> list[str]:
    """The command of every node."""
    extra = (
        ("bucket", "s3://team"), ("code", "s3://team/code"), ("efs", "fs-01234567:/"),
        ("machine", "ml.m5.xlarge"), ("role", "arn:aws:iam::123456789012:role/a"),
        ("security_groups", "sg-1"), ("subnets", "subnet-1"),
    )  # fmt: skip
    made = yaml.safe_load(rendered(plan("sagemaker", folder="", extra=extra, **given)))
    words: list[str] = made["AlgorithmSpecification"]["ContainerEntrypoint"]
    return words


def told(kinds: tuple[str, str]) -> list[str]:
    """``TF_CONFIG`` of two nodes, as services set it."""
    first, second = (f"127.0.0.1:{port}" for port in free_ports(2))
    if kinds == ("chief", "worker"):
        cluster, places = {"chief": [first], "worker": [second]}, (("chief", 0), ("worker", 0))
    else:
        cluster, places = {"worker": [first, second]}, (("worker", 0), ("worker", 1))
    return [
        json.dumps({"cluster": cluster, "environment": "cloud", "task": {"type": kind, "index": n}})
        for kind, n in places
    ]


@pytest.mark.parametrize(
    ("commands", "kinds"), [(vertex, ("chief", "worker")), (azureml, ("worker", "worker"))]
)
def test_the_nodes_of_a_service_train_as_one(
    commands: Value,
    kinds: tuple[str, str],
    tmp_path: Path,
) -> None:
    folder, run = tmp_path / "the project", tmp_path / "runs"
    folder.mkdir()
    run.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    nodes = [
        started(words, tmp_path, TF_CONFIG=text)
        for words, text in zip(commands(folder, run, **GIVEN), told(kinds), strict=True)
    ]
    check_trained(nodes, run)


@pytest.mark.skipif(bool(MISSING), reason=f"no containers can be played here: {MISSING}")
def test_two_containers_of_sagemaker_train_as_one(tmp_path: Path) -> None:
    """Each has a network and ``/opt/ml`` of its own, in which a file tells it who it is."""
    code, run = tmp_path / "code", tmp_path / "run"
    code.mkdir()
    run.mkdir()
    (code / "train.py").write_text(SCRIPT)
    words = sagemaker(**GIVEN)
    with networks(2) as names:
        nodes = []
        for number, name in enumerate(names, 1):
            own = tmp_path / name
            config = own / "input" / "config"
            for folder in (config, own / "input" / "data" / "run", own / "input" / "data" / "code"):
                folder.mkdir(parents=True)
            hosts = {"current_host": f"algo-{number}", "hosts": ["algo-1", "algo-2"]}
            (config / "resourceconfig.json").write_text(json.dumps(hosts))
            inside = f"""
                mkdir -p {OPT} && mount --bind {own} {OPT}
                mount --bind {run} {OPT}/input/data/run
                mount --bind {code} {OPT}/input/data/code
                printf '127.0.0.1 localhost\\n{ADDRESSES}' > {own}/hosts
                mount --bind {own}/hosts /etc/hosts
                exec {shlex.join(words)}
            """
            in_place = ["ip", "netns", "exec", name, "unshare", "--mount", "bash", "-ec", inside]
            nodes.append(started(in_place, tmp_path))
        check_trained(nodes, run)
    with contextlib.suppress(OSError):
        OPT.rmdir()  # the empty one that was mounted over


@contextlib.contextmanager
def networks(count: int) -> Iterator[list[str]]:
    """Namespaces whose networks are joined by a bridge, with addresses that end in 1, 2, …."""
    bridge = f"tfd{os.getpid()}"
    names = [f"{bridge}n{number}" for number in range(1, count + 1)]
    ip("link", "add", bridge, "type", "bridge")
    try:
        ip("link", "set", bridge, "up")
        for number, name in enumerate(names, 1):
            ip("netns", "add", name)
            link = f"v{number}{bridge}"
            ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", link, "master", bridge, "up")
            ip("-n", name, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        ip("link", "delete", bridge)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def started(words: list[str], folder: Path, **variables: str) -> subprocess.Popen[str]:
    """A node that trains on the CPU."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "-1", **variables}
    return subprocess.Popen(
        words, env=environment, cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def check_trained(nodes: list[subprocess.Popen[str]], run: Path) -> None:
    """Both ended well, and trained together."""
    said = [node.communicate(timeout=LIMIT_S)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    record, _ = RunFolder(run / "small").read()
    assert record.outcome["replica_count"] == 2
    assert record.outcome["epochs"] == 2
