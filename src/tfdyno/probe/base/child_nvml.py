"""Ask NVML for the cards of this machine: memory, processes, MIG, errors, clocks held down.

Started as a script in the user's interpreter, which may be old: standard library and
Python 3.6 only. NVML may hang with a lost card, so every answer is printed at once. Numbers are
those of ``nvml.h``.
"""

# Loading pathlib would take longer than this script; what ctypes returns has no type.
# ruff: noqa: PTH119, PTH123, ANN401
import ctypes
import json
import os
import sys
from typing import Any

MARK = "tfdyno:"
VGPU_GUEST = 2
UNCORRECTED, VOLATILE = 1, 0
THROTTLE = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Idle, application clocks, sync boost and display settings hold no training down."""
MANY = 256


class Memory(ctypes.Structure):
    """``nvmlMemory_t``."""

    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class Process(ctypes.Structure):
    """``nvmlProcessInfo_t`` since version 2 of its calls."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def tell(**answer: Any) -> None:
    """Print one answer."""
    sys.stdout.write(MARK + json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(request: Any) -> None:
    """Load NVML from ``request["names"]`` (the first that loads) and tell of every card."""
    nvml, error = None, ""
    for name in request["names"]:
        try:
            nvml = ctypes.CDLL(name)
            break
        except OSError as problem:
            error = error or str(problem)
    if nvml is None:
        tell(kind="nvml", error=error)
        return
    status = nvml.nvmlInit_v2()
    if status:
        tell(kind="nvml", error=_error(nvml, status))
        return
    count, cuda = ctypes.c_uint(0), ctypes.c_int(0)
    _call(nvml, "nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(cuda))
    _call(nvml, "nvmlDeviceGetCount_v2", ctypes.byref(count))
    driver = _text(nvml, "nvmlSystemGetDriverVersion")
    tell(kind="nvml", error="", driver=driver, cuda=cuda.value, count=count.value)
    for index in range(count.value):
        tell(kind="card", name=str(index), **_card(nvml, index))


def _card(nvml: Any, index: int) -> Any:
    """Return facts of one card; what NVML does not support there is left out."""
    device = ctypes.c_void_p()
    status = nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device))
    if status:
        return {"error": _error(nvml, status)}
    facts: Any = {
        "card": _text(nvml, "nvmlDeviceGetName", device),
        "uuid": _text(nvml, "nvmlDeviceGetUUID", device),
    }
    memory, major, minor = Memory(), ctypes.c_int(0), ctypes.c_int(0)
    if _call(nvml, "nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory)):
        facts.update(memory_bytes=memory.total, memory_used_bytes=memory.used)
    asked = (device, ctypes.byref(major), ctypes.byref(minor))
    if _call(nvml, "nvmlDeviceGetCudaComputeCapability", *asked):
        facts["capability"] = f"{major.value}.{minor.value}"
    mode, pending = ctypes.c_uint(0), ctypes.c_uint(0)
    if _call(nvml, "nvmlDeviceGetMigMode", device, ctypes.byref(mode), ctypes.byref(pending)):
        facts["is_mig"] = bool(mode.value)
    if _call(nvml, "nvmlDeviceGetVirtualizationMode", device, ctypes.byref(mode)):
        facts["is_vgpu"] = mode.value == VGPU_GUEST
    wide = ctypes.c_ulonglong(0)
    counted = (device, UNCORRECTED, VOLATILE, ctypes.byref(wide))
    if _call(nvml, "nvmlDeviceGetTotalEccErrors", *counted):
        facts["ecc_errors"] = wide.value
    if _call(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", device, ctypes.byref(wide)):
        facts["throttle"] = [text for bit, text in THROTTLE.items() if wide.value & bit]
    facts["processes"] = _processes(nvml, device)
    return facts


def _processes(nvml: Any, device: Any) -> Any:
    """List processes that compute on the card: id, name, bytes (0: the driver does not tell)."""
    for name in ("_v3", "_v2"):
        count, have = ctypes.c_uint(MANY), (Process * MANY)()
        call = "nvmlDeviceGetComputeRunningProcesses" + name
        if _call(nvml, call, device, ctypes.byref(count), have):
            unknown = ctypes.c_ulonglong(-1).value
            return [
                [one.pid, process_name(one.pid), 0 if one.used == unknown else one.used]
                for one in have[: count.value]
            ]
    return []


def process_name(pid: int, root: str = "/proc") -> str:
    """Name a process's program, of Python with its script or as a notebook's; empty: hidden."""
    try:
        with open(f"{root}/{pid}/cmdline", "rb") as file:
            words = file.read(4096).decode(errors="replace").split("\0")
    except OSError:
        return ""
    name = os.path.basename(words[0])
    if any("ipykernel" in word for word in words):
        return name + " (notebook kernel)"
    return (name + " " + _script(words[1:])).strip() if name.startswith("python") else name


def _script(words: Any) -> str:
    """Return what Python runs: a file's name, or ``-m MODULE``; empty for code and a prompt."""
    for place, word in enumerate(words):
        if word == "-m":
            return " ".join(map(str, words[place : place + 2]))
        if word == "-c":
            return ""
        if word and not word.startswith("-"):
            return str(os.path.basename(word))
    return ""


def _text(nvml: Any, name: str, *arguments: Any) -> str:
    buffer = ctypes.create_string_buffer(256)
    known = _call(nvml, name, *arguments, buffer, ctypes.c_uint(256))
    return buffer.value.decode(errors="replace") if known else ""


def _call(nvml: Any, name: str, *arguments: Any) -> bool:
    """Return whether the call exists in this driver and worked."""
    function = getattr(nvml, name, None)
    return function is not None and function(*arguments) == 0


def _error(nvml: Any, status: int) -> str:
    nvml.nvmlErrorString.restype = ctypes.c_char_p
    text = nvml.nvmlErrorString(status)
    return text.decode(errors="replace") if text else f"error {status}"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
