"""What managed services have in common: machines that exist, folders that outlive the nodes."""

from __future__ import annotations

import csv
from pathlib import PurePosixPath

import pytest
from tests.render.plans import plan

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.render.launch.managed import (
    TABLE,
    accelerator,
    address_parts,
    disk_gib,
    folder_in,
    in_folder,
    is_spot,
    machine_name,
    machines,
)

SERVICES = ("vertex", "azureml", "sagemaker")
OFFERS = TABLE.parents[2] / "catalog" / "data" / "offers.csv"
MOUNT = PurePosixPath("/gcs/team")


def test_every_row_names_a_card_of_the_catalogue_and_a_source() -> None:
    with TABLE.open(newline="") as lines:
        rows = list(csv.DictReader(lines, strict=True))
    assert {row["service"] for row in rows} == set(SERVICES)
    keys = [(row["service"], row["gpu"], int(row["gpus"]), row["machine"]) for row in rows]
    assert keys == sorted(set(keys))
    for row in rows:
        assert find(row["gpu"]).slug == row["gpu"]
        assert row["source"]


@pytest.mark.parametrize(
    ("service", "provider", "prefix"),
    [("vertex", "gcp", ""), ("azureml", "azure", ""), ("sagemaker", "aws", "ml.")],
)
def test_machines_have_the_gpus_that_the_offers_say(
    service: str, provider: str, prefix: str
) -> None:
    offered = {}
    with OFFERS.open(newline="") as lines:
        for row in csv.DictReader(lines):
            if row["provider"] == provider:
                offered[prefix + row["instance"]] = (row["gpu_slug"], float(row["gpu_count"]))
    both = [one for one in machines(service) if one.name in offered]
    assert len(both) > 3
    for one in both:
        assert (one.gpu, one.gpus) == offered[one.name]


def test_the_machine_with_the_plans_gpus_is_taken() -> None:
    h100 = {"gpu": "h100-sxm5-80gb", "gpus_per_node": 8}
    names = {service: machine_name(plan(service, **h100), "x") for service in SERVICES}
    assert names == {
        "vertex": "a3-highgpu-8g",
        "azureml": "Standard_ND96isr_H100_v5",
        "sagemaker": "ml.p5.48xlarge",
    }
    named = plan("vertex", extra=(("machine", "own-machine"),), **h100)
    assert machine_name(named, "x") == "own-machine"
    assert accelerator(named) == "NVIDIA_H100_80GB"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "--with machine=an-example"),
        ({"gpus_per_node": 8}, "name the card with --gpu SLUG"),
        ({"gpus_per_node": 3, "gpu": "l4"}, "choose 1, 2, 4, 8 with --gpus-per-node"),
        ({"gpus_per_node": 1, "gpu": "gtx-970"}, "choose among a100-sxm4-40gb"),
    ],
)
def test_a_machine_that_is_not_known_is_told(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        machine_name(plan("vertex", **given), "an-example")


@pytest.mark.parametrize(
    ("output", "folder"),
    [("tfdyno-runs/a", "/gcs/team/a"), ("mine/b", "/gcs/team/mine/b"),
     ("/gcs/team/c", "/gcs/team/c")],
)  # fmt: skip
def test_the_run_lies_where_it_outlives_the_nodes(output: str, folder: str) -> None:
    assert folder_in(plan("vertex", output=output), MOUNT) == folder


@pytest.mark.parametrize("output", ["/data/run", "../run", "/gcs/team/../other"])
def test_a_run_on_the_nodes_alone_is_refused(output: str) -> None:
    with pytest.raises(UsageError, match="is gone when the nodes are"):
        folder_in(plan("vertex", output=output), MOUNT)


@pytest.mark.parametrize("given", ["team", "gs://", "gs://a//b", "s3://team", "gs://a/../b"])
def test_an_address_of_no_bucket_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="is no address of a bucket"):
        address_parts(plan("vertex", extra=(("bucket", given),)), "bucket", "gs://")


def test_settings_are_read_strictly() -> None:
    assert is_spot(plan("vertex", extra=(("spot", "true"),)))
    assert disk_gib(plan("vertex", extra=(("disk_gib", "200"),))) == 200
    with pytest.raises(UsageError, match="spot 'yes' is not one of"):
        is_spot(plan("vertex", extra=(("spot", "yes"),)))
    with pytest.raises(UsageError, match="give a whole number"):
        disk_gib(plan("vertex", extra=(("disk_gib", "0"),)))
    with pytest.raises(UsageError, match="--with bucket=gs://NAME"):
        address_parts(plan("vertex"), "bucket", "gs://")


def test_a_folder_is_entered_by_a_program_that_images_have() -> None:
    assert in_folder("", ("a",)) == ["a"]
    assert in_folder("/srv/my project", ("a", "b")) == ["env", "--chdir=/srv/my project", "a", "b"]
