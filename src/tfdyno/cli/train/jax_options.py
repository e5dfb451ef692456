"""Options of a training on Keras' JAX backend, and the words that repeat them to a node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import Filled, OneOf, Whole, together
from tfdyno.core.train.jax_plan import BACKENDS, MOST_HOST_DEVICES

if TYPE_CHECKING:
    from tfdyno.core.train.jax_plan import JaxPlan

JAX_OPTIONS = together(
    click.option("--backend", type=OneOf("backend", BACKENDS), default="tensorflow",
                 show_default=True, help="Of Keras, for the script as it is."),
    click.option("--mesh", type=Filled(), metavar="AXES",
                 help="With jax: devices along each axis, as data=2,model=2."),
    click.option("--layout", type=Filled(), metavar="FILE",
                 help="With jax: rules (TOML) that split weights.  [default: proposed]"),
    click.option("--rule", "rules", multiple=True, metavar="PATTERN=AXES",
                 help="With jax: one rule of a layout, as .*/kernel=-,model."),
    click.option("--write-layout", "write_layout", type=Filled(), metavar="FILE",
                 help="With jax: keep the rules that are used."),
    click.option("--host-devices", "host_devices",
                 type=Whole("--host-devices", most=MOST_HOST_DEVICES), metavar="N",
                 help="With jax on CPUs: devices that each process stands for."),
)  # fmt: skip
"""Which backend, and over what it splits a model."""


def jax_plan(given: dict[str, Any], *, folder: str = "") -> JaxPlan | None:
    """What ``JAX_OPTIONS`` ask; None: it trains on TensorFlow.

    Args:
        given: Options by name.
        folder: Where the nodes look for files.

    Raises:
        UsageError: An option cannot be read, or does nothing on the backend.
    """
    from tfdyno.core.train.device_mesh import read_mesh
    from tfdyno.core.train.jax_plan import JaxPlan, check_backend
    from tfdyno.core.train.layout import read_rule_word, read_rules

    names = ("mesh", "layout", "write_layout", "host_devices", "rules")
    options = {f"--{name.replace('_', '-')}": given.get(name) for name in names}
    if check_backend(given["backend"], options) == "tensorflow":
        return None
    rules = tuple(read_rule_word(text) for text in given.get("rules") or ())
    if given["layout"]:
        rules += read_rules(Path(folder, given["layout"]))
    return JaxPlan(
        mesh=read_mesh(given["mesh"]) if given["mesh"] else None,
        rules=rules,
        host_devices=given["host_devices"] or 0,
        write_layout=given["write_layout"] or "",
    )


def jax_words(plan: JaxPlan | None) -> tuple[str, ...]:
    """The same for ``tfdyno node``; rules are written out, so that their file need not be there."""
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
