"""What a person or a log tells of a machine, as facts."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tfdyno.core.doctor.machine_facts import (
    DriverFacts,
    GpuFacts,
    LibraryFacts,
    MachineFacts,
    PythonFacts,
    System,
)

if TYPE_CHECKING:
    from tfdyno.rules.log.explained import Line, LogFacts

CapabilityOf = Callable[[str], tuple[str, str]]
"""Slug and compute capability of a card by its name; empty where the catalogue has none."""

_LINUX = re.compile(
    r"linux|ubuntu|debian|centos|fedora|red ?hat|rhel|rocky|alma|suse|arch\b|mint|manjaro|gentoo"
    r"|jetpack|l4t|wsl|docker|kube|colab|kaggle|slurm|hpc|aws|gcp|sagemaker|dgx",
    re.IGNORECASE,
)
_CONTAINERS = ("kaggle", "colab", "kube", "podman", "docker", "container")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_COUNT = re.compile(r"(?:^|\s)(?:(\d+)\s*[x×]\s+|(\d+) gpus?\b|[x×]\s?(\d+)$)", re.IGNORECASE)
_MEMORY = re.compile(r"[\s,(]*\b\d+(?:\.\d+)?\s?gi?b\b\)?", re.IGNORECASE)
"""Memory told with the name of a card."""
_NO_NAME = {"", "present", "yes", "unknown", "none", "no", "gpu", "nvidia"}


def machine_from_told(
    told: Mapping[str, object], capability_of: CapabilityOf | None = None
) -> MachineFacts:
    """Read words such as ``{"tf": "2.12.1", "os": "Windows 11", "gpu": "RTX 4060"}`` as facts.

    Args:
        told: Any of ``tf, python, cuda, cudnn, driver, gpu, os, cuda_visible_devices, gpu_count``,
            each in free words; others are left alone.
        capability_of: Looks a card up; without it a capability is known only where it is told.
    """
    words = {name: str(value).strip() for name, value in told.items() if value is not None}
    tf, system_words = words.get("tf", ""), words.get("os", "")
    everything = " ".join((system_words, tf)).lower()
    environment = {}
    if "cuda_visible_devices" in words:
        environment["CUDA_VISIBLE_DEVICES"] = words["cuda_visible_devices"]
    python = PythonFacts(
        version=_version(words.get("python", "")),
        manager="conda" if "conda" in everything else "",
    )
    is_jetson = _is_jetson(everything, words.get("gpu", ""))
    return MachineFacts(
        system=_system(system_words, is_jetson=is_jetson is True),
        release=system_words,
        architecture=_architecture(everything, is_jetson=is_jetson is True),
        is_wsl=_is_wsl(system_words),
        container=_container(everything),
        is_jetson=is_jetson,
        environment=environment,
        python=python,
        tensorflow=_version(tf),
        keras=_version(words.get("keras", "")),
        cuda=_version(words.get("cuda", "")),
        cudnn=_version(words.get("cudnn", "")),
        driver=DriverFacts(version=_version(words.get("driver", ""))),
        gpus=_gpus(words.get("gpu", ""), words.get("gpu_count", ""), capability_of),
    )


def told_by_log(
    log: LogFacts, facts: MachineFacts, capability_of: CapabilityOf | None = None
) -> MachineFacts:
    """Fill what is unknown of the machine with what the log tells; what was known wins."""

    def first(watch: str, name: str) -> str:
        found = (_joined(line.values, name) for line in log.watched.get(watch, ()))
        return next(filter(None, found), "")

    system = facts.system or _system_of(log.watched)
    python, driver = facts.python, facts.driver
    manager = python.manager or ("conda" if "conda" in log.watched else "")
    path = first("library_path", "path")
    environment = {"LD_LIBRARY_PATH": path} | facts.environment if path else facts.environment
    gpus = _gpus_of(log.watched, capability_of) if facts.gpus is None else facts.gpus
    is_jetson = True if "jetson" in log.watched and facts.is_jetson is None else facts.is_jetson
    told_wsl = "wsl" in log.watched and system in {"", "linux"}
    return dataclasses.replace(
        facts,
        system="linux" if not system and (told_wsl or is_jetson) else system,
        is_wsl=True if told_wsl and facts.is_wsl is None else facts.is_wsl,
        is_jetson=is_jetson,
        architecture=facts.architecture or ("aarch64" if "aarch64" in log.watched else ""),
        container=facts.container or _container(" ".join(log.watched)),
        environment=environment,
        python=dataclasses.replace(
            python, version=python.version or first("python", "python"), manager=manager
        ),
        tensorflow=facts.tensorflow or first("tensorflow", "tensorflow"),
        driver=dataclasses.replace(
            driver,
            version=driver.version or first("kernel_driver", "driver") or first("driver", "driver"),
            library_version=driver.library_version or first("library_driver", "driver"),
            cuda=driver.cuda or first("driver", "cuda"),
        ),
        gpus=gpus,
        libraries=facts.libraries or _libraries(log.watched),
    )


def _joined(values: Mapping[str, str], name: str) -> str:
    """Return a value by its name, or ``a.b`` where a line gives both numbers apart."""
    if name in values:
        return values[name]
    return f"{values['a']}.{values['b']}" if "a" in values and "b" in values else ""


def _version(text: str) -> str:
    found = _VERSION.search(text)
    return found[0] if found else ""


def _system(words: str, *, is_jetson: bool) -> System:
    lowered = words.lower()
    if "wsl" in lowered or is_jetson:
        return "linux"
    if "windows" in lowered or re.match(r"win(?:\b|\d)", lowered):
        return "windows"
    if re.search(r"mac ?os|os ?x|darwin", lowered):
        return "macos"
    return "linux" if _LINUX.search(lowered) else ""


def _is_wsl(words: str) -> bool | None:
    """Allow ``Ubuntu 22.04`` to be inside WSL; only another system rules it out."""
    if "wsl" in words.lower():
        return True
    return False if _system(words, is_jetson=False) in {"windows", "macos"} else None


def _is_jetson(words: str, gpu: str) -> bool | None:
    return True if re.search(r"jetson|jetpack|tegra|l4t", f"{words} {gpu.lower()}") else None


def _architecture(words: str, *, is_jetson: bool) -> str:
    if is_jetson or "aarch64" in words or "arm64" in words:
        return "aarch64"
    return "x86_64" if "x86_64" in words or "amd64" in words else ""


def _container(words: str) -> str:
    found = next((name for name in _CONTAINERS if name in words.lower()), "")
    return {"kube": "kubernetes", "container": "docker"}.get(found, found)


def _gpus(
    words: str, count: str, capability_of: CapabilityOf | None
) -> tuple[GpuFacts, ...] | None:
    """Read cards of words such as ``4x RTX 4090``, ``T4 x4``, ``none``; None: nothing is told."""
    if words.lower() in {"none", "no"} or count == "0":
        return ()
    counted = _COUNT.search(words)
    number = (
        int(count)
        if count.isdecimal()
        else int(next(filter(None, counted.groups())))
        if counted
        else 1
    )
    name = _COUNT.sub(" ", words).strip(" ,()") if counted else words
    is_named = name.lower() not in _NO_NAME
    if not is_named and not words and not count:
        return None
    card = _card(name if is_named else "", "", capability_of)
    return (card,) * min(number, 1024)


def _card(name: str, capability: str, capability_of: CapabilityOf | None) -> GpuFacts:
    slug, known = capability_of(name) if capability_of and name else ("", "")
    if capability_of and name and not slug:
        slug, known = capability_of(_MEMORY.sub("", name))
    told = re.search(r"(?:compute )?capability (\d+\.\d)|\((\d+\.\d)\)", name)
    said = next(filter(None, told.groups()), "") if told else ""
    return GpuFacts(
        name=name,
        slug=slug,
        compute_capability=capability or said or known,
        is_mig_enabled="mig" in name.lower().split(),
    )


def _system_of(watched: Mapping[str, Any]) -> System:
    """Return the system that the most lines speak for."""
    names: tuple[System, ...] = ("windows", "linux", "macos")
    if "colab" in watched or "kaggle" in watched:
        return "linux"
    best = max(names, key=lambda name: len(watched.get(name, ())))
    return best if best in watched else ""


def _gpus_of(
    watched: Mapping[str, tuple[Line, ...]], capability_of: CapabilityOf | None
) -> tuple[GpuFacts, ...] | None:
    """Return different cards that the log names; how many of each it does not tell reliably."""
    cards: dict[str, str] = {}
    for line in watched.get("gpu", ()) + watched.get("gpu_table", ()):
        name = line.values.get("gpu", "")
        capability = _joined(line.values, "capability")
        cards[name] = cards.get(name) or capability
    if not cards:
        return None
    if len(cards) > 1:
        cards.pop("", None)
    return tuple(_card(name, capability, capability_of) for name, capability in cards.items())


def _libraries(watched: Mapping[str, Iterable[Line]]) -> tuple[LibraryFacts, ...]:
    """Return libraries that failed to load and that were opened, as the log says."""
    failed = {line.values["soname"]: line.text for line in watched.get("failed", ())}
    opened = {line.values["soname"] for line in watched.get("opened", ())} - failed.keys()
    return tuple(
        [LibraryFacts(soname=name, error=text) for name, text in failed.items()]
        + [LibraryFacts(soname=name, path=name) for name in sorted(opened)]
    )
