"""The plan of a launch: what it refuses, and what each node is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.launch_plan import (
    LaunchPlan,
    check_name,
    engine_named,
    extra_from,
    name_from,
    name_of,
    node_words,
    seconds_of,
)


def plan(**given: Any) -> LaunchPlan:
    basic = {"engine": "slurm", "name": "small", "reference": "train.py", "output": "run"}
    return LaunchPlan(**{**basic, **given})


def test_every_node_gets_the_same_words() -> None:
    made = plan(nodes=4, gpus_per_node=8, options=("--epochs", "3"), script_arguments=("-x", "1"))
    assert " ".join(node_words(made)) == (
        "python3 -m tfdyno node train.py --nodes 4 --gpus-per-node 8 --output run --epochs 3 "
        "-- -x 1"
    )
    assert "--port 5000 --output /mnt" in " ".join(node_words(plan(port=5000), output="/mnt"))


def test_a_check_is_started_as_the_training_is() -> None:
    made = plan(nodes=4, gpus_per_node=8, port=5000, options=("--epochs", "3"), is_check=True)
    assert " ".join(node_words(made, output="/mnt")) == (
        "python3 -m tfdyno doctor --cluster --nodes 4 --gpus-per-node 8 --port 5000 --output /mnt"
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nodes": 0}, "--nodes 0 is not possible"),
        ({"nodes": 100_000}, "give 1 to 4096"),
        ({"gpus_per_node": -1}, "--gpus-per-node -1"),
        ({"port": 80}, "give 1024 to 65535"),
        ({"restarts": -1}, "--restarts -1"),
        ({"gpu": "t4"}, "say how many with --gpus-per-node"),
        ({"name": "My Job"}, "did you mean my-job"),
        ({"name": "a" * 41}, "40 are the most"),
        ({"engine": "slrum"}, "did you mean slurm"),
        ({"engine": "local", "nodes": 2, "port": 65535}, "give 1024 to 65534"),
        ({"environment": (("A-B", "1"),)}, "'A-B' is no name"),
        ({"extra": (("account", "a\n#SBATCH --uid=0"),)}, "--with account holds a line break"),
    ],
)
def test_what_no_engine_can_run_is_refused_in_words(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plan(**given)


@pytest.mark.parametrize(
    ("text", "meant"), [("k8s", "kubernetes"), ("sky", "skypilot"), ("azure", "azureml")]
)
def test_other_names_of_an_engine_are_told(text: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean {meant}"):
        engine_named(text)


@given(st.text())
def test_any_text_gives_a_name_that_is_allowed(text: str) -> None:
    check_name(name_from(text))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("90min", 5400), ("2h", 7200), ("1.5d", 129_600), ("1-12:00:00", 129_600),
     ("0:30:00", 1800)],
)  # fmt: skip
def test_times_are_read_as_people_and_slurm_write_them(text: str, seconds: float) -> None:
    assert seconds_of(text, "--time-limit") == seconds


@pytest.mark.parametrize("text", ["", "soon", "0h", "-2h", "00:00:00", "2 weeks"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        seconds_of(text, "--time-limit")


def test_settings_of_an_engine_are_checked_by_name() -> None:
    known = {"partition": "where", "account": "who"}
    assert extra_from(("partition=a", "partition=b=c"), known, "slurm") == (("partition", "b=c"),)
    with pytest.raises(UsageError, match="did you mean partition"):
        extra_from(("partitoin=a",), known, "slurm")
    with pytest.raises(UsageError, match="KEY=VALUE, with one of partition, account"):
        extra_from(("partition",), known, "slurm")
    with pytest.raises(UsageError, match="local has no settings of its own"):
        extra_from(("a=b",), {}, "local")


def test_a_setting_that_is_not_given_has_its_default() -> None:
    made = plan(extra=(("queue", "team"),), nodes=3)
    assert (made.option("queue"), made.option("claim", "none")) == ("team", "none")


@pytest.mark.parametrize(
    ("reference", "name"),
    [("jobs/My train.py", "my-train"), ("train.py:make", "train"), ("keras:ResNet50", "resnet50"),
     ("task:resnet18-cifar10", "resnet18-cifar10"), ("my.models:large", "large")],
)  # fmt: skip
def test_a_job_is_called_as_what_it_trains(reference: str, name: str) -> None:
    assert name_of(reference) == name
