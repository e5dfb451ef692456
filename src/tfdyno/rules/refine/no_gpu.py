"""No GPU is listed and no line says why: what the machine makes likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.environment.seen import ENGINES
from tfdyno.rules.refine.code import is_too_old
from tfdyno.rules.refine.libraries import is_older, is_other_cuda
from tfdyno.rules.values import values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.choose.software import Knowledge
    from tfdyno.core.doctor.finding import Verdict
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.rules.log.explained import LogFacts
    from tfdyno.rules.match import Match

NO_GPU = "sym.no_gpu"
_NO_REASON = ("sym.", "harmless.", "gpu.arch_jit")
"""What does not empty the list: a card that compiles at first use is listed."""


def refine_no_gpu(
    matches: tuple[Match, ...], log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> tuple[Match, ...]:
    """Replace an empty GPU list by the cause that the machine makes likely; runs last."""
    del log
    if any(not one.cause.startswith(_NO_REASON) for one in matches):
        return matches
    known = values(facts, knowledge)
    cause, verdict = next(_reasons(known))
    return tuple(one.recast(cause, verdict) if one.cause == NO_GPU else one for one in matches)


def _reasons(known: dict[str, str]) -> Iterator[tuple[str, Verdict]]:
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
