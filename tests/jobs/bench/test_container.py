"""Commands to the letter, and as a shell reads them."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfdyno
from tfdyno.catalog.software import NEWEST
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.bench.container import container

RESULTS = ["--output", "tfdyno-results"]
ARGUMENTS = ["train.py:model", "--batch-size", "64"]
INSTALL = "tfdyno==1.2.3"
NEWEST_COMMAND = (
    'docker run --gpus all --rm --ipc=host --hostname "$(hostname)" '
    "-e TFDYNO_CONTAINER_IMAGE=tensorflow/tensorflow:2.21.0-gpu "
    '-v "$PWD":/work -w /work tensorflow/tensorflow:2.21.0-gpu '
    """bash -c 'pip install --quiet "tensorflow[and-cuda]==2.21.0" tfdyno==1.2.3"""
    " && tfdyno bench --output tfdyno-results train.py:model --batch-size 64'"
)
OLDER_COMMAND = (
    """docker run --gpus '"device=0,3"' --rm --ipc=host --hostname "$(hostname)" """
    "-e TFDYNO_CONTAINER_IMAGE=tensorflow/tensorflow:2.17.0-gpu "
    '-v "$PWD":/work -w /work tensorflow/tensorflow:2.17.0-gpu '
    "bash -c 'python3 -m venv /opt/tfdyno"
    " && /opt/tfdyno/bin/pip install --quiet tfdyno==1.2.3"
    " && /opt/tfdyno/bin/tfdyno bench --python /usr/bin/python3 "
    "--output tfdyno-results train.py:model --batch-size 64'"
)
PODMAN_COMMAND = (
    "podman run --device nvidia.com/gpu=0 --device nvidia.com/gpu=3 "
    '--security-opt=label=disable --rm --ipc=host --hostname "$(hostname)" '
    "-e TFDYNO_CONTAINER_IMAGE=tensorflow/tensorflow:2.17.0-gpu "
    '-v "$PWD":/work -w /work docker.io/tensorflow/tensorflow:2.17.0-gpu '
    "bash -c 'python3 -m venv /opt/tfdyno"
    " && /opt/tfdyno/bin/pip install --quiet tfdyno==1.2.3"
    " && /opt/tfdyno/bin/tfdyno bench --python /usr/bin/python3 "
    "--output tfdyno-results train.py:model --batch-size 64'"
)


def inner(command: str) -> list[list[str]]:
    """The commands that run inside, as a shell splits them."""
    script = shlex.split(command)[-1]
    words, parts = [], shlex.split(script)
    for word in [*parts, "&&"]:
        if word == "&&":
            words.append(parts[: parts.index("&&")] if "&&" in parts else parts)
            parts = parts[len(words[-1]) + 1 :]
    return words


def test_the_newest_release_to_the_letter() -> None:
    found = container(ARGUMENTS, install=INSTALL)
    assert found.command == NEWEST_COMMAND
    assert found.tensorflow.startswith(NEWEST)
    assert found.driver_linux == "525.60.13"
    assert any("cuDNN 8.9" in note for note in found.notes)


def test_an_older_release_on_chosen_cards_to_the_letter() -> None:
    found = container(ARGUMENTS, tensorflow="2.17", devices=("0", "3"), install=INSTALL)
    assert found.command == OLDER_COMMAND
    assert found.podman_command == PODMAN_COMMAND
    assert any("nvidia-ctk cdi generate" in note for note in found.notes)


def test_a_version_without_an_image_replaces_the_one_inside() -> None:
    found = container([], tensorflow="2.19.1", install=INSTALL)
    assert (found.tensorflow, found.image) == ("2.19.1", "tensorflow/tensorflow:2.19.0-gpu")
    assert '"tensorflow[and-cuda]==2.19.1"' in found.command
    assert "There is no image of TensorFlow 2.19.1: it replaces 2.19.0 inside." in found.notes
    older = container([], tensorflow="2.17.1", install=INSTALL)
    assert "pip install --quiet tensorflow==2.17.1 && python3 -m venv" in older.command


def test_this_tfdyno_is_installed_and_a_known_digest_is_told() -> None:
    found = container([], tensorflow="2.18")
    assert f"tfdyno=={tfdyno.__version__}" in found.command
    assert found.digest.startswith("sha256:1f16fbd9")
    assert "github.com" in found.source


@given(st.lists(st.text(st.characters(exclude_characters="\0\r"), min_size=1), max_size=4))
def test_arguments_survive_two_shells(arguments: list[str]) -> None:
    plain = ["--output", "here", *(one for one in arguments if one != "&&")]
    last = inner(container(plain, install=INSTALL).command)[-1]
    assert last == ["tfdyno", "bench", *plain]


@pytest.mark.parametrize(
    ("arguments", "added"),
    [
        (["a.py"], RESULTS),
        (["a.py", "--output", "r"], []),
        (["a.py", "--output=r"], []),
        (["a.py", "--", "--output", "r"], RESULTS),  # the script's own word
    ],
)
def test_results_are_kept_outside_of_the_container(arguments: list[str], added: list[str]) -> None:
    found = container(arguments, install=INSTALL)
    assert inner(found.command)[-1] == ["tfdyno", "bench", *added, *arguments]
    told = "The results are kept in tfdyno-results of the current folder." in found.notes
    assert told == bool(added)


NASTY = ["my train.py", "it's", "$HOME", "`id`", 'a"b', "a\\b", "!x", "two\nlines", "*", ""]


def test_a_real_shell_agrees() -> None:
    command = container(NASTY, install=INSTALL).command
    script = shlex.split(command)[-1].partition(" && ")[2]
    show = f"tfdyno() {{ printf '%s\\0' \"$@\"; }}; {script}"
    done = subprocess.run(["bash", "-c", show], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == ["bench", *RESULTS, *NASTY]
    outer = f"docker() {{ printf '%s\\0' \"$@\"; }}; {command}"
    done = subprocess.run(["bash", "-c", outer], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[-2].endswith(script)


@pytest.mark.parametrize(
    ("tensorflow", "sentence"),
    [
        ("2.22", "the catalogue has no container image of TensorFlow '2.22': it has 2.9 to 2.21; "
                 "did you mean 2.21?"),
        ("2.1.8", "the catalogue has no container image of TensorFlow '2.1.8': it has 2.9 to "
                  "2.21; did you mean 2.18?"),
        ("2.19.7", "the catalogue has no container image of TensorFlow '2.19.7': it has 2.19.0 to "
                   "2.19.1; did you mean 2.19.1?"),
        ("2.19.x", "the catalogue has no container image of TensorFlow '2.19.x': it has 2.9 to "
                   "2.21; did you mean 2.19?"),
        ("2.13", "tfdyno cannot run in tensorflow/tensorflow:2.13.0-gpu: it has Python 3.8 and "
                 "tfdyno needs 3.11; name a release from 2.14 on."),
    ],
)  # fmt: skip
def test_a_release_without_a_usable_image_is_a_wrong_request(
    tensorflow: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        container(ARGUMENTS, tensorflow=tensorflow)
    assert str(caught.value) == sentence


def test_a_path_that_the_container_cannot_see_is_told() -> None:
    notes = container(["/data/train.py", "--epochs", "1"]).notes
    assert notes[-1] == (
        "The container sees the current folder only, as /work: /data/train.py is not in it."
    )
