"""How the installed TensorFlow was built, read from its ``build_info.py`` without importing it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.doctor.machine_facts import BuildInfo, MachineFacts
from tfdyno.probe.base.attempt import Part, failed, found, not_run
from tfdyno.probe.base.distributions import join
from tfdyno.probe.base.python import interpreter

if TYPE_CHECKING:
    from tfdyno.probe.base.host import Host

PLACES = ("tensorflow", "tensorflow_core")
Values = dict[str, object]


def tensorflow_build(host: Host, facts: MachineFacts) -> Part:
    """Find whether TensorFlow is built for CUDA, for which, and for which cards.

    The names of DLLs in that file are wrong on Windows and are not read.
    """
    for folder in interpreter(host).folders:
        for place in PLACES:
            path = join(host, folder, place, "python", "platform", "build_info.py")
            text = host.text(path)
            if text:
                return _read(path, text, facts)
    return not_run("TensorFlow is not installed for this Python")


def values(source: str) -> Values:
    """Return the names and constants that a ``build_info.py`` of any release assigns.

    Raises:
        SyntaxError: It is not Python.
    """
    have: Values = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            if isinstance(value, ast.Call) and value.args and name == "build_info":
                value = value.args[0]  # OrderedDict([...])
            try:
                constant = ast.literal_eval(value)
            except ValueError:
                continue
            have |= dict(constant) if name == "build_info" else {name: constant}
    return have


def build_info(have: Values) -> BuildInfo:
    """Return the facts that matter; old releases name two of them otherwise."""
    capabilities = have.get("cuda_compute_capabilities") or ()
    names = capabilities.split(",") if isinstance(capabilities, str) else capabilities
    return BuildInfo(
        is_cuda_build=bool(have.get("is_cuda_build")),
        cuda=_version(have.get("cuda_version") or have.get("cuda_version_number"), dotted=True),
        cudnn=_version(have.get("cudnn_version") or have.get("cudnn_version_number")),
        compute_capabilities=tuple(map(str, names)) if isinstance(names, list | tuple) else (),
        is_tensorrt_build=bool(have.get("is_tensorrt_build")),
    )


def _version(told: object, *, dotted: bool = False) -> str:
    """Return a version; on Windows the end of a DLL's name stands there: ``64_112`` is 11.2."""
    text = str(told or "")
    if not text.startswith("64_"):
        return text
    number = text[3:]
    return f"{number[:-1]}.{number[-1]}" if dotted and len(number) > 1 else number


def _read(path: str, text: str, facts: MachineFacts) -> Part:
    try:
        have = values(text)
    except (SyntaxError, ValueError, TypeError) as error:
        return failed(f"{path} cannot be read: {error}")
    if "is_cuda_build" not in have:
        return failed(f"{path} does not say is_cuda_build")
    return found(python=replace(facts.python, build=build_info(have)))
