"""``bench --container``: the same bench in the public image of a TensorFlow release, as a command.

Nothing is started or pulled: the command is for a machine with Docker or Podman and NVIDIA's
container toolkit.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.catalog.containers import container_images
from tfdyno.catalog.releases import release_of
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import did_you_mean
from tfdyno.core.base.version import VERSION
from tfdyno.probe.machine.fingerprint import IMAGE_VARIABLE
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.catalog.containers import ContainerImage

FOLDER = "/work"
APART = "/opt/tfdyno"
NEEDS_SINGLE_QUOTES = frozenset("$`\"\\!\n'")
RESULTS = "tfdyno-results"
THEIR_PYTHON = "/usr/bin/python3"
CDI = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
"""docs.nvidia.com, container toolkit, "Support for Container Device Interface"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """How to repeat a bench in a container."""

    tensorflow: str
    """The version that runs in it: ``2.21.0``."""
    image: str
    digest: str
    """``sha256:...`` that a public source saw; empty: none did."""
    command: str
    """The command for Docker, one line for a POSIX shell, in the folder of the workload."""
    podman_command: str
    driver_linux: str
    """Smallest NVIDIA driver of the host."""
    notes: tuple[str, ...]
    """One sentence each."""
    source: str


def container(
    arguments: Sequence[str],
    *,
    tensorflow: str = "",
    devices: Sequence[str] = (),
    install: str = "",
) -> Container:
    """Return the command that benches in the image of a TensorFlow release.

    Args:
        arguments: Those of ``tfdyno bench``, without ``--container`` and ``--tf``.
        tensorflow: Release or version, ``2.21`` or ``2.19.1``; the newest when empty.
        devices: Numbers or UUIDs of the GPUs; all when empty. Inside they are numbered from 0.
        install: What pip installs as tfdyno; the version that runs when empty.

    Raises:
        UsageError: No such release, or its image cannot run tfdyno.
        ToolError: A shipped table is corrupt.
    """
    image, version = _image_of(tensorflow)
    if image.tfdyno == "no":
        raise UsageError(
            f"tfdyno cannot run in {image.image}",
            why=f"it has Python {image.python} and tfdyno needs 3.11",
            remedy=f"name a release from {_first_usable()} on",
        )
    script = _script(image, version, arguments, install or f"tfdyno=={VERSION}")
    release = release_of(version)
    return Container(
        tensorflow=version,
        image=image.image,
        digest=image.digest,
        command=_docker(image.image, devices, script),
        podman_command=_podman(image.image, devices, script),
        driver_linux=release.min_driver_linux if release else "",
        notes=_notes(image, version, arguments),
        source=image.source,
    )


def _image_of(tensorflow: str) -> tuple[ContainerImage, str]:
    """Return the image of a release, and the version that shall run in it."""
    images = {one.tensorflow: one for one in container_images() if one.image}
    if not tensorflow:
        newest = list(images.values())[-1]
        return newest, newest.version
    minor = ".".join(tensorflow.split(".")[:2])
    image, release = images.get(minor), release_of(tensorflow)
    if image is None or release is None or not re.fullmatch(r"\d+\.\d+(\.\d+)?", tensorflow):
        raise _unknown(tensorflow, list(images))
    if tensorflow == minor:
        return image, image.version
    last = int(release.last_wheel.split(".")[2])
    if int(tensorflow.split(".")[2]) > last:
        raise _unknown(tensorflow, [f"{minor}.{patch}" for patch in range(last + 1)])
    return image, tensorflow


def _unknown(tensorflow: str, known: Sequence[str]) -> UsageError:
    return UsageError(
        f"the catalogue has no container image of TensorFlow '{tensorflow}'",
        why=f"it has {known[0]} to {known[-1]}" if len(known) > 1 else f"it has {known[0]}",
        remedy=did_you_mean(tensorflow, known, otherwise=f"did you mean {known[-1]}?"),
    )


def _first_usable() -> str:
    return next(one.tensorflow for one in container_images() if one.tfdyno != "no")


def _script(image: ContainerImage, version: str, arguments: Sequence[str], install: str) -> str:
    """Return what the shell inside does: add what is missing, then bench."""
    wanted = image.requirement or ("" if version == image.version else "tensorflow")
    theirs = [f"{wanted}=={version}"] if wanted else []
    rest = [*_results(arguments), *arguments]
    if image.tfdyno == "beside":
        lines = [["pip", "install", "--quiet", *theirs, install]]
        lines.append(["tfdyno", "bench", *rest])
    else:
        lines = [["pip", "install", "--quiet", *theirs]] if theirs else []
        lines.append(["python3", "-m", "venv", APART])
        lines.append([f"{APART}/bin/pip", "install", "--quiet", install])
        lines.append([f"{APART}/bin/tfdyno", "bench", "--python", THEIR_PYTHON, *rest])
    return " && ".join(" ".join(map(_word, line)) for line in lines)


def _results(arguments: Sequence[str]) -> list[str]:
    """Return a folder for the results that outlives the container, unless one is named."""
    own = [*arguments, "--"][: [*arguments, "--"].index("--")]
    is_named = any(one.partition("=")[0] == "--output" for one in own)
    return [] if is_named else ["--output", RESULTS]


def _word(text: str) -> str:
    """Quote for a shell; by double quotes where that is enough, since single ones go around it."""
    plain = shlex.quote(text) == text or NEEDS_SINGLE_QUOTES.intersection(text)
    return shlex.quote(text) if plain or not text else f'"{text}"'


def _docker(image: str, devices: Sequence[str], script: str) -> str:
    """Quote for Docker: without the quotes inside the quotes a comma ends the list."""
    gpus = shlex.quote(f'"device={",".join(devices)}"') if devices else "all"
    return f"docker run --gpus {gpus} {_run(image, image, script)}"


def _podman(image: str, devices: Sequence[str], script: str) -> str:
    names = [shlex.quote(f"nvidia.com/gpu={one}") for one in devices or ("all",)]
    cards = " ".join(f"--device {name}" for name in names)
    run = _run(image, f"docker.io/{image}", script)
    return f"podman run {cards} --security-opt=label=disable {run}"


def _run(name: str, image: str, script: str) -> str:
    """Return what both engines take; the host's name and the image's go into the result."""
    return (
        '--rm --ipc=host --hostname "$(hostname)" '
        f"-e {IMAGE_VARIABLE}={shlex.quote(name)} "
        f'-v "$PWD":{FOLDER} -w {FOLDER} {shlex.quote(image)} bash -c {shlex.quote(script)}'
    )


def _notes(image: ContainerImage, version: str, arguments: Sequence[str]) -> tuple[str, ...]:
    notes = [
        say("The host needs NVIDIA's driver and its container toolkit, but no CUDA."),
        say("Podman needs the cards described once: {command}.", command=CDI),
        say("Files that the bench writes belong to root."),
    ]
    if folder := _results(arguments):
        notes.append(
            say("The results are kept in {folder} of the current folder.", folder=folder[1])
        )
    if version != image.version:
        notes.append(
            say(
                "There is no image of TensorFlow {release}: it replaces {other} inside.",
                release=version,
                other=image.version,
            )
        )
    if image.requirement:
        notes.append(
            say(
                "The image holds cuDNN {cudnn} and TensorFlow {release} needs a newer one: "
                "{package} brings it, a download of several gigabytes at every start.",
                cudnn=image.cudnn,
                release=image.tensorflow,
                package=image.requirement,
            )
        )
    if image.tfdyno == "apart":
        notes.append(
            say(
                "TensorFlow {release} cannot share NumPy with tfdyno, so tfdyno gets an "
                "environment of its own inside.",
                release=image.tensorflow,
            )
        )
    outside = [one for one in arguments if one.startswith(("/", "~", "../"))]
    if outside:
        notes.append(
            say(
                "The container sees the current folder only, as {folder}: {path} is not in it.",
                folder=FOLDER,
                path=outside[0],
            )
        )
    return tuple(notes)
