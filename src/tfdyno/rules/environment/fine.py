"""What was looked at and is in order, in a few words that need no translation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.core.choose.software import Knowledge
    from tfdyno.core.doctor.finding import Diagnosis
    from tfdyno.core.doctor.machine_facts import MachineFacts

_PACKAGES = {"numpy": "NumPy", "keras": "Keras", "protobuf": "protobuf"}


def fine(facts: MachineFacts, knowledge: Knowledge, diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return versions and cards against which no finding speaks."""
    blamed = {one.cause for one in diagnosis.findings}
    said = [f"Python {facts.python.version}"] if facts.python.version else []
    said += _packages(facts, blamed)
    if facts.driver.version and not any(cause.startswith(("drv.", "wsl.")) for cause in blamed):
        cuda = f" (CUDA {facts.driver.cuda})" if facts.driver.cuda else ""
        said.append(f"driver {facts.driver.version}{cuda}")
    verdicts = {one.gpu: one.verdict for one in knowledge.support}
    for card in facts.gpus or ():
        if verdicts.get(card.slug) == "native":
            said.append(f"{card.name}, {card.compute_capability}, kernels in this wheel")
    loaded = [one.soname for one in facts.libraries if one.path]
    if loaded and not any(cause.startswith("lib.") for cause in blamed):
        said.append(f"{len(loaded)} CUDA libraries load")
    return (*said, *_checks(facts))


def _packages(facts: MachineFacts, blamed: set[str]) -> list[str]:
    said = []
    if facts.tensorflow or facts.python.tensorflow_folder:
        build = facts.python.build
        kind = "" if build is None else f" (CUDA {build.cuda})" if build.is_cuda_build else " (CPU)"
        said.append(f"TensorFlow {facts.tensorflow or 'of unknown version'}{kind}")
    if any(cause.startswith("pkg.") for cause in blamed):
        return said
    installed = facts.python.installed
    return said + [f"{word} {installed[name]}" for name, word in _PACKAGES.items()
                   if name in installed]  # fmt: skip


def _checks(facts: MachineFacts) -> list[str]:
    child = facts.child
    if child is None or child.failed:
        return []
    said = [f"import {child.import_s:.1f} s"]
    said += [f"{name} {_ms(first)}, then {_ms(second)}" for name, first, second in child.checks]
    return said


def _ms(time_s: float) -> str:
    return f"{time_s * 1e3:.0f} ms" if time_s >= 0.001 else f"{time_s * 1e6:.0f} µs"
