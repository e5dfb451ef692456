"""Symptoms of a hidden card or a driver that does not start, seen together with the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.condition import version_key
from tfdyno.rules.environment.seen import CHOSEN, ENGINES, hides_cards
from tfdyno.rules.match import Match
from tfdyno.rules.refine.code import is_too_old
from tfdyno.rules.refine.libraries import is_older, is_other_cuda
from tfdyno.rules.values import values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tfdyno.core.choose.software import Knowledge
    from tfdyno.core.doctor.finding import Verdict
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.rules.log.explained import LogFacts
    from tfdyno.rules.log.slot import Line

NO_DEVICE = "sym.no_device"
DLOPEN = "sym.dlopen_failed"
NOT_INSTALLED = "drv.not_installed"
LIBCUDA = "drv.libcuda_missing"
INIT = "drv.init_failed"
MISMATCH = "drv.kernel_user_mismatch"
WSL = "wsl.driver"
NO_FLAG = "ctr.no_gpu_flag"
VISIBLE = "gpu.visible_devices"
MIG = "gpu.mig"
NONE = "gpu.none"
NO_GPU = "sym.no_gpu"
_NO_REASON = ("sym.", "harmless.", "gpu.arch_jit")
"""What does not empty the list: a card that compiles at first use is listed."""
_NOTEBOOKS = {"colab", "kaggle"}
_EXPLAIN_NO_DEVICE = ("drv.", "wsl.", "ctr.", "gpu.visible", "gpu.mig", "gpu.vgpu", "gpu.none")


def refine_gpu(
    matches: tuple[Match, ...], log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> tuple[Match, ...]:
    """Say why CUDA finds no card: WSL, container, hidden cards, two driver versions, no card.

    The same line has another cause on another machine: in WSL there is never a
    /proc/driver/nvidia, in a container libcuda comes with ``--gpus``.
    """
    known = values(facts, knowledge)
    found = [_placed(one, facts, known) for one in matches]
    found += _two_versions(found, log)
    found += _no_card(found, facts)
    found = [_without_reason(one, found, facts, known, _drivers(log)) for one in found]
    return tuple(_left_over(one, found) for one in found)


def _placed(match: Match, facts: MachineFacts, known: Mapping[str, str]) -> Match:
    """Return a driver that cannot be seen: what that means where the log was written."""
    if match.cause not in {NOT_INSTALLED, LIBCUDA, NO_FLAG, INIT}:
        return match
    is_host = any("nvidia-container-cli" in one.text for one in match.evidence)
    container = known.get("container", "")
    if known.get("platform") == "wsl" and match.cause != NO_FLAG:
        return match.recast(WSL, "likely")
    is_inside = container in ENGINES | _NOTEBOOKS and not is_host
    if match.cause in {NOT_INSTALLED, LIBCUDA} and is_inside:
        return match.recast(NO_FLAG, "likely")
    if match.cause == NO_FLAG and (container == "none" or facts.is_jetson):
        return match.recast(INIT, "likely")
    if match.cause == INIT and hides_cards(facts):
        return match.recast(VISIBLE, "likely")
    return match


def _drivers(log: LogFacts) -> tuple[Line, Line] | None:
    """Return the lines in which TensorFlow prints the library's and the kernel's driver version."""
    kernel, library = log.watched.get("kernel_driver"), log.watched.get("library_driver")
    if not kernel or not library:
        return None
    pair = (library[0], kernel[0])
    return pair if all(line.values.get("driver") for line in pair) else None


def _is_torn(pair: tuple[Line, Line]) -> bool:
    library, kernel = (version_key(line.values["driver"]) for line in pair)
    return library != kernel


def _two_versions(matches: list[Match], log: LogFacts) -> list[Match]:
    """Say so where the driver of the kernel and that of the library differ."""
    pair = _drivers(log)
    if pair is None or not _is_torn(pair) or any(one.cause == MISMATCH for one in matches):
        return []
    library, kernel = pair
    return [
        Match(
            cause=MISMATCH,
            verdict="proven",
            evidence=tuple(line.evidence for line in pair),
            basis="log",
            values={
                "kernel_driver": kernel.values["driver"],
                "library_driver": library.values["driver"],
            },
            line=min(library.number, kernel.number),
        )
    ]


def _no_card(matches: list[Match], facts: MachineFacts) -> list[Match]:
    """Drop missing libraries as a fault: the machine was looked at and has no NVIDIA card."""
    looked = facts.pci_gpus == () and not facts.gpus and not facts.is_wsl
    told = facts.gpus == () and facts.pci_gpus is None
    groups = ("sym.", "drv.", "lib.cuda_missing", "lib.cudnn_missing")
    shown = [one for one in matches if one.cause.startswith(groups)]
    if not shown or not (looked or told) or facts.container in ENGINES:
        return []
    return [shown[0].recast(NONE, "proven" if looked else "likely")]


def _without_reason(
    match: Match,
    matches: list[Match],
    facts: MachineFacts,
    known: Mapping[str, str],
    drivers: tuple[Line, Line] | None,
) -> Match:
    """Name what the machine makes likely where CUDA finds no device and no line says why."""
    if match.cause != NO_DEVICE or any(
        other.cause.startswith(_EXPLAIN_NO_DEVICE) for other in matches
    ):
        return match
    tests: tuple[tuple[bool, str, Verdict], ...] = (
        ("MIG-" in known.get("visible_devices", ""), MIG, "likely"),
        (hides_cards(facts), VISIBLE, "likely"),
        (any(card.is_mig_enabled for card in facts.gpus or ()), MIG, "likely"),
        (any(card.is_vgpu for card in facts.gpus or ()), "gpu.vgpu", "likely"),
        (known.get("platform") == "wsl", WSL, "likely"),
        (known.get("container", "") in ENGINES | _NOTEBOOKS, NO_FLAG, "likely"),
        (bool(known.get("visible_devices")) and not facts.gpus, VISIBLE, "possible"),
        (
            drivers is not None and CHOSEN not in facts.environment,
            VISIBLE,
            "possible",
        ),
    )
    for is_so, cause, verdict in tests:
        if is_so:
            return match.recast(cause, verdict)
    return match.recast(INIT, "possible")


def _left_over(match: Match, matches: list[Match]) -> Match:
    """Tell, where libraries were skipped and none is named, that most often CUDA's are missing."""
    if match.cause == DLOPEN and not any(one.cause.startswith("lib.") for one in matches):
        return match.recast("lib.cuda_missing", "likely")
    return match


def refine_no_gpu(
    matches: tuple[Match, ...], log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> tuple[Match, ...]:
    """Replace an empty GPU list by the cause that the machine makes likely; runs last."""
    del log
    if any(not one.cause.startswith(_NO_REASON) for one in matches):
        return matches
    known = values(facts, knowledge)
    cause, verdict = next(_likely(known))
    return tuple(one.recast(cause, verdict) if one.cause == NO_GPU else one for one in matches)


def _likely(known: dict[str, str]) -> Iterator[tuple[str, Verdict]]:
    """Yield causes that fit this machine, the best first."""
    platform, told = known.get("platform", ""), known.get("cuda", "")
    if platform == "macos":
        yield "mac.no_cuda", "likely"
    if known.get("architecture") == "aarch64":
        yield "arm.no_gpu_wheel", "likely"
    if is_too_old(known.get("capability", ""), known):
        yield "gpu.arch_too_old", "likely"
    if known.get("container", "") in ENGINES and platform != "wsl":
        yield "ctr.no_gpu_flag", "possible"
    if is_older(known) and told and is_other_cuda(told, known.get("needed_cuda", "")):
        yield "lib.cuda_wrong_version", "likely"
    if platform == "windows" and "tensorflow" not in known:
        yield "win.native_no_gpu", "possible"  # what pip installs today
    if is_older(known) and told:
        yield "lib.not_on_loader_path", "possible"
    yield "lib.cuda_missing", "possible"
