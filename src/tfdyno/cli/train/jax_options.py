"""Options of a training on Keras' JAX backend, and the words that repeat them to a node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.cli.backend_options import EITHER
from tfdyno.cli.command import TEXT, given, many, option
from tfdyno.cli.options import Filled, Whole
from tfdyno.core.train.jax_plan import MOST_HOST_DEVICES

if TYPE_CHECKING:
    from tfdyno.core.train.jax_plan import JaxPlan

SPLITTING = ("mesh", "layout", "write_layout", "host_devices", "rules")
"""Options that say over what a model is split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxOptions:
    """Which backend, and over what it splits a model."""

    backend: str | None = EITHER
    mesh: str | None = option(
        type=Filled(), metavar="AXES", help="With jax: devices along each axis, as data=2,model=2."
    )
    layout: str | None = option(
        type=Filled(), metavar="FILE",
        help="With jax: rules (TOML) that split weights.  [default: proposed]",
    )  # fmt: skip
    rules: tuple[str, ...] = many(
        "--rule", type=TEXT, metavar="PATTERN=AXES",
        help="With jax: one rule of a layout, as .*/kernel=-,model.",
    )  # fmt: skip
    write_layout: str | None = option(
        type=Filled(), metavar="FILE", help="With jax: keep the rules that are used."
    )
    host_devices: int | None = option(
        type=Whole("--host-devices", most=MOST_HOST_DEVICES), metavar="N",
        help="With jax on CPUs: devices that each process stands for.",
    )  # fmt: skip


def jax_plan(options: JaxOptions, *, folder: str = "", found: str = "") -> JaxPlan | None:
    """Return what is asked; None: it trains on TensorFlow.

    Args:
        options: As typed.
        folder: Where the nodes look for files.
        found: The backend, where no option names one; empty: TensorFlow.

    Raises:
        UsageError: An option cannot be read, or does nothing on the backend.
    """
    from tfdyno.core.train.device_mesh import read_mesh
    from tfdyno.core.train.jax_plan import JaxPlan, check_backend
    from tfdyno.core.train.layout import read_rule_word, read_rules

    asked = options.backend or found or "tensorflow"
    if check_backend(asked, given(options, *SPLITTING)) == "tensorflow":
        return None
    rules = tuple(read_rule_word(text) for text in options.rules)
    if options.layout:
        rules += read_rules(Path(folder, options.layout))
    return JaxPlan(
        mesh=read_mesh(options.mesh) if options.mesh else None,
        rules=rules,
        host_devices=options.host_devices or 0,
        write_layout=options.write_layout or "",
    )


def jax_words(plan: JaxPlan | None) -> tuple[str, ...]:
    """Return the same for ``tfdyno node``; rules are written out, their file may not be there."""
    if plan is None:
        return ()
    from tfdyno.core.train.layout import rule_word

    words = ["--backend", "jax"]
    words += ["--mesh", str(plan.mesh)] if plan.mesh else []
    for rule in plan.rules:
        words += ["--rule", rule_word(rule)]
    words += ["--host-devices", str(plan.host_devices)] if plan.host_devices else []
    words += ["--write-layout", plan.write_layout] if plan.write_layout else []
    return tuple(words)
