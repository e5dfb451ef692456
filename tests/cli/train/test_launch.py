"""cli/launch: options become a plan, every engine's file is printed, wrong use is one sentence."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tfdyno.cli.main import main
from tfdyno.core.cluster.launch_plan import ENGINES

if TYPE_CHECKING:
    from pathlib import Path

NEEDS = {
    "kubernetes": ["--image", "train:1", "--with", "claim=team"],
    "skypilot": ["--with", "bucket=s3://runs"],
    "vertex": ["--image", "train:1", "--with", "bucket=gs://a", "--with", "machine=n1-standard-8"],
    "azureml": ["--image", "train:1", "--with", "compute=cpus"],
    "sagemaker": [
        "--image",
        "train:1",
        "--with",
        "bucket=s3://a",
        "--with",
        "machine=ml.m5.xlarge",
        "--with",
        "role=arn:aws:iam::123456789012:role/a",
        "--with",
        "efs=fs-01234567:/",
        "--with",
        "subnets=subnet-1",
        "--with",
        "security_groups=sg-1",
    ],
}
"""Without which an engine has nothing to run on."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('never runs')\n")
    return tmp_path


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dry_run_prints_the_file_of_every_engine(
    engine: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    words = ["launch", "train.py", "--on", engine, "--nodes", "2", "--dry-run"]
    assert main([*words, *NEEDS.get(engine, [])]) == 0
    text = capsys.readouterr().out
    assert "node" in text
    assert "train.py" in text
    assert sorted(path.name for path in folder.iterdir()) == ["train.py"]
    if engine not in ("local", "slurm"):
        assert list(yaml.safe_load_all(text))
    else:
        done = subprocess.run(["bash", "-n"], input=text, text=True, check=False)
        assert done.returncode == 0


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "ray"])
def test_a_check_is_rendered_in_place_of_the_training(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["launch", "train.py", "--on", engine, "--nodes", "2", "--check", "--dry-run"]
    assert main([*words, *NEEDS.get(engine, [])]) == 0
    text = " ".join(capsys.readouterr().out.replace("- ", "").replace("'", "").split())
    assert "doctor --cluster --nodes 2 --gpus-per-node 0" in text
    assert "tfdyno node" not in text
    assert "train together. The first" not in text


def test_a_check_starts_on_this_machine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def seen(request: object, **_told: bool) -> int:
        asked.append(request)
        return 1

    monkeypatch.setattr("tfdyno.cli.measure.doctor_cluster.check_here", seen)
    assert main(["launch", "train.py", "--nodes", "3", "--check", "--output", "run"]) == 1
    (request,) = asked
    assert getattr(request, "nodes", 0) == 3
    assert str(getattr(request, "output", "")).endswith("run")
    assert main(["launch", "train.py", "--check"]) == 2
    assert main(["launch", "train.py", "--on", "ray", "--nodes", "2", "--check"]) == 2
    assert "--check does not go with --on ray" in capsys.readouterr().err


@pytest.mark.tf
def test_the_failure_of_a_script_on_one_node_is_said_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.py").write_text("import keras\nraise ValueError('no such thing')\n")
    assert main(["launch", "train.py", "--nodes", "1", "--output", "run"]) == 2
    err = capsys.readouterr().err
    assert err.count("line 2: ValueError: no such thing.") == 1
    assert "No checkpoint was written; the logs are in run." in err


def test_write_keeps_the_file_and_starts_nothing(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert main(["launch", "train.py", "--on", "slurm", "--nodes", "2", "--write", "jobs"]) == 0
    assert capsys.readouterr().out == "jobs/train.sbatch\n"
    assert "#SBATCH --nodes=2" in (folder / "jobs/train.sbatch").read_text()
    assert main(["launch", "train.py", "--nodes", "2", "--write", "jobs"]) == 0
    assert os.access(folder / "jobs/train.sh", os.X_OK)


def test_json_has_plan_and_file(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--on", "slurm", "--memory", "64GiB", "--time-limit", "2h", "--epochs", "3"]
    assert main(["launch", "train.py", *words, "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plan"]["memory_bytes"] == 64 << 30
    assert found["plan"]["time_limit_s"] == 7200
    assert found["plan"]["options"] == ["--epochs", "3"]
    assert found["file"].startswith("#!/bin/bash")


def test_a_recipe_is_written_out_so_that_its_file_need_not_be_there(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "fast.toml").write_text('precision = "mixed_bfloat16"\n[input]\nprefetch = 4\n')
    words = ["--recipe", "fast.toml", "--set", "accumulation=2", "--on", "slurm", "--dry-run"]
    assert main(["launch", "train.py", *words]) == 0
    text = capsys.readouterr().out
    for word in ("precision=mixed_bfloat16", "accumulation=2", "input.prefetch=4"):
        assert f"--set {word}" in text
    assert "fast.toml" not in text


def test_words_of_the_script_and_variables_are_passed_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--on", "slurm", "--dry-run", "--env", "A=b c", "--", "--data", "a b"]
    assert main(["launch", "train.py", *words]) == 0
    text = capsys.readouterr().out
    assert "export A='b c'" in text
    assert "-- --data 'a b'" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--on", "slrum"], "did you mean slurm?"),
        (["--on", "k8s"], "did you mean kubernetes?"),
        (["--nodes", "0"], "nodes 0 is not possible"),
        (["--gpus-per-node", "two"], "--gpus-per-node 'two' is not a number"),
        (["--gpu", "t4"], "say how many with --gpus-per-node"),
        (["--gpu", "t44", "--gpus-per-node", "1"], "did you mean"),
        (["--env", "A"], "write --env NAME=VALUE"),
        (["--with", "partition=a"], "local has no settings of its own"),
        (["--on", "slurm", "--with", "partion=a"], "did you mean partition?"),
        (["--memory", "much"], "write it as 24GiB"),
        (["--time-limit", "later"], "write it as 90min"),
        (["--name", "My run"], "did you mean my-run?"),
        (["--recipe", "auto"], "tfdyno recipe auto"),
        (["--set", "strategy=ps", "--nodes", "2"], "does not train on 2 nodes"),
        (["--set", "strategy=multiworker", "--set", "devices=2"], "say --nodes"),
        (["--restarts", "x"], "--restarts 'x' is not a number"),
        (["--restarts", "-1"], "--restarts -1 is not possible; give a whole number, 0 or more"),
        (["--port", "70000"], "--port 70000 is not possible"),
        (["--set", "visible_devices=0"], "visible_devices = 0 does not go with launch"),
        (["--image", "train:1"], "--image train:1 is nothing that --on local looks at"),
        (["--cpus", "4"], "--cpus 4 is nothing that --on local looks at"),
        (["--memory", "64GiB"], "--memory 64 GiB is nothing that --on local looks at"),
        (["--on", "vertex", "--cpus", "4"], "--with machine=NAME"),
        (["--on", "azureml", "--restarts", "2"], "the same command again goes on"),
        (["--on", "gcp"], "did you mean vertex?"),
        (["--on", "sagemaker", "--image", "a"], "--with bucket=s3://NAME"),
        (["--on", "slurm", "--gpu", "t4", "--gpus-per-node", "1"], "--with gpu_type=NAME"),
        (["--on", "ray", "--image", "train:1"], "the cluster has its own"),
        (["--on", "ray", "--with", "claim=a"], "add --with kuberay=rayjob"),
        (["--on", "ray", "--with", "kuberay=rayjob"], "name it with --image"),
        (["--on", "slurm", "--with", "foo"], "with one of partition, account"),
        (["--workdir", "nowhere"], "there is no folder"),
        (["--data", "data.py:make", "--on", "slurm"], "there is no file data.py"),
        (["--set", "strategy=ps", "--set", "execution=xla"], "do not go together"),
        (["--on", "kubernetes"], "name it with --image"),
        (["--on", "kuberay"], "did you mean ray --with kuberay=rayjob?"),
        (["--check", "--nodes", "2", "--backend", "jax"], "measures TensorFlow's all-reduce"),
        (
            ["--backend", "jax", "--host-devices", "2", "--gpus-per-node", "1"],
            "--host-devices 2 does nothing with GPUs",
        ),
        (
            ["--on", "ray", "--backend", "jax", "--mesh", "model=3", "--nodes", "2"],
            "the mesh model=3 does not fit",
        ),
    ],
)
def test_wrong_use_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["launch", "train.py", *words, "--dry-run"]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_workload_that_is_not_there_is_told_but_for_an_image(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["launch", "trian.py", "--on", "slurm", "--dry-run"]) == 2
    assert "did you mean train.py?" in capsys.readouterr().err
    words = ["launch", "in_image.py", "--on", "kubernetes", *NEEDS["kubernetes"], "--dry-run"]
    assert main(words) == 0


def test_the_workload_is_looked_for_in_the_workdir(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "own.py").write_text("print('never runs')\n")
    words = ["--on", "slurm", "--workdir", "inner", "--dry-run"]
    assert main(["launch", "own.py", *words]) == 0
    assert f"cd {inner} || exit 2" in capsys.readouterr().out
    assert main(["launch", "train.py", *words]) == 2
    assert "there is no file inner/train.py" in capsys.readouterr().err


def test_a_preset_of_a_folder_and_its_texts_are_looked_for_in_the_workdir(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    preset = folder / "inner" / "tuned"
    preset.mkdir(parents=True)
    registered = {"registered_name": "keras_hub>GPT2Backbone", "config": {"hidden_dim": 16}}
    (preset / "config.json").write_text(json.dumps(registered))
    (folder / "inner" / "texts.txt").write_text("one\n")
    words = ["--on", "slurm", "--workdir", "inner", "--lora", "4", "--dry-run", "--data"]
    assert main(["launch", "keras_hub:./tuned", *words, "texts.txt"]) == 0
    asked = " ".join(capsys.readouterr().out.replace("\\\n", " ").split())
    assert "keras_hub:./tuned" in asked
    assert "--data texts.txt --lora 4" in asked
    assert main(["launch", "keras_hub:./other", *words, "texts.txt"]) == 2
    assert "there is no preset in inner/other" in capsys.readouterr().err
    assert main(["launch", "keras_hub:./tuned", *words, "text.txt"]) == 2
    assert "there is no file inner/text.txt" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["skypilot", "azureml"])
def test_a_folder_that_is_copied_holds_the_workload(
    engine: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    words = ["--on", engine, "--workdir", ".", *NEEDS.get(engine, []), "--dry-run"]
    assert main(["launch", "train.py", *words]) == 0
    for reference in (str(folder / "train.py"), f"../{folder.name}/train.py"):
        capsys.readouterr()
        assert main(["launch", reference, *words]) == 2
        assert "is not there on the nodes" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["slurm", "ray", "azureml", "skypilot"])
def test_a_layout_and_a_script_for_jax_are_read_in_the_folder_that_the_nodes_get(
    engine: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "inner").mkdir()
    (folder / "train.py").rename(folder / "inner" / "own.py")
    (folder / "inner" / "rules.toml").write_text("[rules]\n'.*kernel' = ['', 'model']\n")
    words = ["launch", "own.py", "--on", engine, "--workdir", "inner", *NEEDS.get(engine, [])]
    words += ["--backend", "jax", "--mesh", "model=2", "--nodes", "2", "--layout", "rules.toml"]
    assert main([*words, "--dry-run"]) == 0
    assert ".*kernel=-,model" in capsys.readouterr().out
    (folder / "inner" / "own.py").write_text("import tensorflow as tf\ntf.GradientTape()\n")
    assert main([*words, "--dry-run"]) == 2
    assert "own.py cannot train on the JAX backend" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["--on", "kubernetes"], ["--on", "ray", "--with", "kuberay=rayjob"], ["--on", "vertex"]],
)
def test_what_is_here_of_a_training_in_an_image_is_read_for_jax(
    words: list[str], capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """--workdir is a folder of the image, and files are looked for where they were named."""
    needs = ["--image", "train:1", "--with", "claim=team"]
    words = [*words, *(NEEDS["vertex"] if "vertex" in words else needs)]
    words += ["--workdir", "/srv/train", "--backend", "jax", "--mesh", "model=2", "--nodes", "2"]
    (folder / "rules.toml").write_text("[rules]\n'.*kernel' = ['', 'model']\n")
    words += ["--layout", "rules.toml", "--dry-run"]
    assert main(["launch", "train.py", *words]) == 0
    assert ".*kernel=-,model" in capsys.readouterr().out
    (folder / "train.py").write_text("import tensorflow as tf\ntf.GradientTape()\n")
    assert main(["launch", "train.py", *words]) == 2
    assert "train.py cannot train on the JAX backend" in capsys.readouterr().err


def test_a_check_is_not_begun_again(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["launch", "train.py", "--on", "slurm", "--nodes", "2", "--restarts", "3", "--check"]
    assert main([*words, "--dry-run"]) == 0
    assert "left=0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "python"),
    [([], sys.executable), (["--image", "train:1"], "python3"), (["--with", "module=a"], "python3"),
     (["--with", "activate=bin/activate"], "python3"), (["--python", "/p"], "/p")],
)  # fmt: skip
def test_an_environment_of_its_own_brings_its_python(
    words: list[str], python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["launch", "train.py", "--on", "slurm", *words, "--dry-run"]) == 0
    assert f" {python} -m tfdyno node" in capsys.readouterr().out


def test_cards_that_the_shell_shows_are_shared_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    words = ["launch", "train.py", "--gpus-per-node", "1", "--dry-run", "--nodes"]
    assert main([*words, "2"]) == 0
    out = capsys.readouterr().out
    assert "CUDA_VISIBLE_DEVICES=4 " in out
    assert "CUDA_VISIBLE_DEVICES=5 " in out
    assert main([*words, "3"]) == 2
    assert "CUDA_VISIBLE_DEVICES=4,5 lists 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("engine", "program"),
    [("slurm", "sbatch"), ("kubernetes", "kubectl"), ("skypilot", "sky"), ("vertex", "gcloud"),
     ("azureml", "az"), ("sagemaker", "aws")],
)  # fmt: skip
def test_an_engine_that_is_not_here_is_told(
    engine: str, program: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["launch", "train.py", "--on", engine, *NEEDS.get(engine, [])]) == 2
    sentence = capsys.readouterr().err
    assert f"there is no {program} on this machine" in sentence
    assert "--write FOLDER" in sentence


def test_ray_gets_a_cluster_of_its_own_on_kubernetes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is that of the pods, and kubectl takes it."""
    words = ["in_image.py", "--on", "ray", "--image", "train:1", "--nodes", "2"]
    words += ["--with", "kuberay=rayjob", "--with", "claim=team"]
    assert main(["launch", *words, "--dry-run"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "kind: RayJob" in out
    assert "python3 -m tfdyno launch in_image.py --on ray" in out
    assert "--workdir /workspace --output tfdyno-runs/in-image" in out
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["launch", *words]) == 2
    assert "there is no kubectl on this machine" in capsys.readouterr().err


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is here")
def test_without_ray_it_is_told_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", "train.py", "--on", "ray", "-q"]) == 2
    captured = capsys.readouterr()
    assert "install tfdyno[ray]" in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_what_the_program_of_the_engine_says_is_told(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = folder / "sbatch"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    program.write_text("#!/bin/sh\necho 4711\n")
    program.chmod(0o755)
    assert main(["launch", "train.py", "--on", "slurm"]) == 0
    out = capsys.readouterr().out
    assert "sbatch --parsable tfdyno-runs/train.sbatch: 4711" in out
    assert "tfdyno-runs/train on the nodes" in out
    program.write_text("#!/bin/sh\necho 'invalid partition' >&2\nexit 1\n")
    assert main(["launch", "train.py", "--on", "slurm"]) == 2
    err = capsys.readouterr().err
    assert "sbatch refuses tfdyno-runs/train.sbatch: invalid partition" in err


def test_the_program_of_aws_is_given_an_address_of_the_file(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = folder / "aws"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    program.write_text('#!/bin/sh\nfor word; do :; done\ncat "${word#file://}" | head -n 1\n')
    program.chmod(0o755)
    assert main(["launch", "train.py", "--on", "sagemaker", *NEEDS["sagemaker"]]) == 0
    out = capsys.readouterr().out
    path = "tfdyno-runs/train.sagemaker.yaml"
    assert f"--cli-input-yaml file://{path}: # train: 1 node;" in out
    assert "Its run is in /opt/ml/input/data/run/train on the nodes." in out
