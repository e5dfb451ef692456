"""How each framework is told where programs are kept, unless the user has told it himself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.flags import flag_names, is_file_name, with_flags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.probe.python.compilers import Framework
    from tfdyno.store.compiled.programs import View

TF_FLAGS, XLA_FLAGS = "TF_XLA_FLAGS", "XLA_FLAGS"
PROGRAMS, READ_ONLY = "tf_xla_persistent_cache_directory", "tf_xla_persistent_cache_read_only"
AUTOTUNE = "xla_gpu_per_fusion_autotune_cache_dir"
KNOWN = (PROGRAMS, READ_ONLY, AUTOTUNE)
"""Flags that are asked for in the library: one that it does not know would end the process."""
JAX_FOLDER, JAX_SWITCH = "JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"
JAX_KEEPS_ALL = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",
}
"""JAX leaves out what took less than a second; of Keras' first step that is 20 small programs. The
folder of its autotuning would be part of its key (0.10.2), and ours is another for each process."""
PLACES: dict[Framework, dict[str, str]] = {
    "tensorflow": {"programs": "programs", "autotune": "autotune"},
    "jax": {"programs": "programs"},
}
"""Folder of each kind; what JAX's autotuning found is in its programs alone."""


def own_choice(framework: Framework, variables: Mapping[str, str]) -> str:
    """Return what the user has chosen himself, which is left alone; empty: nothing."""
    if framework == "jax":
        own = variables.get(JAX_FOLDER)
        off = variables.get(JAX_SWITCH, "").lower() in {"0", "false", "off", "no"}
        return JAX_FOLDER if own else JAX_SWITCH if off else ""
    flags = variables.get(TF_FLAGS, "")
    return TF_FLAGS if is_file_name(flags) or f"--{PROGRAMS}" in flag_names(flags) else ""


def variables_for(
    framework: Framework,
    view: View,
    known: frozenset[str],
    variables: Mapping[str, str],
    recipe: Recipe,
    *,
    has_cards: bool,
    has_room: bool,
) -> dict[str, str]:
    """Return variables over ``variables``, so that the child keeps what it compiles in ``view``.

    Args:
        framework: That the child compiles with.
        view: Its folder.
        known: Those of ``KNOWN`` that its XLA knows.
        variables: All that it has else.
        recipe: What it runs. A deterministic one gets no results of autotuning, since XLA keeps not
            all of its choices, and the rest is tried out anew.
        has_cards: Whether there is anything to autotune.
        has_room: Whether the disk has room for more. JAX goes on where it cannot write.
    """
    if framework == "jax":
        return {JAX_FOLDER: str(view.place("programs"))} | {
            name: value for name, value in JAX_KEEPS_ALL.items() if name not in variables
        }
    tensorflow = {f"--{PROGRAMS}": str(view.place("programs"))}
    if not has_room:
        tensorflow[f"--{READ_ONLY}"] = "true"
    if any(name.removeprefix("--") not in known for name in tensorflow):
        return {}
    told = {TF_FLAGS: with_flags(variables.get(TF_FLAGS, ""), tensorflow)}
    if AUTOTUNE in known and has_cards and has_room and not recipe.deterministic:
        xla = variables.get(XLA_FLAGS, "")
        told[XLA_FLAGS] = with_flags(xla, {f"--{AUTOTUNE}": str(view.place("autotune"))})
    return told
