"""Ask the driver for its CUDA version and its cards, as TensorFlow would.

Started as a script in the user's interpreter, which may be old: standard library and
Python 3.6 only. ``cuInit`` may hang or crash, so every answer is printed at once.
"""

# Loading pathlib would take longer than this script; what ctypes returns has no type.
# ruff: noqa: PTH123, ANN401
import ctypes
import json
import sys
from typing import Any

MARK = "tfdyno:"


def tell(**answer: Any) -> None:
    """Print one answer."""
    sys.stdout.write(MARK + json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(request: Any) -> None:
    """Load the library ``request["names"]`` (the first that loads), initialise it, list cards."""
    cuda, error = None, ""
    for name in request["names"]:
        try:
            cuda = ctypes.CDLL(name)
            break
        except OSError as problem:
            error = error or str(problem)
    if cuda is None:
        tell(kind="library", name="cuda", path="", error=error)
        return
    tell(kind="library", name="cuda", path=_mapped(), error="")
    number = ctypes.c_int(0)
    if not cuda.cuDriverGetVersion(ctypes.byref(number)):
        tell(kind="cuda", version=number.value)
    status = cuda.cuInit(0)
    tell(kind="init", error=_name(cuda, status))
    if not status:
        _cards(cuda)


def _cards(cuda: Any) -> None:
    count = ctypes.c_int(0)
    cuda.cuDeviceGetCount(ctypes.byref(count))
    for index in range(count.value):
        device, name = ctypes.c_int(0), ctypes.create_string_buffer(256)
        memory, major, minor = ctypes.c_size_t(0), ctypes.c_int(0), ctypes.c_int(0)
        cuda.cuDeviceGet(ctypes.byref(device), index)
        cuda.cuDeviceGetName(name, 256, device)
        cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
        cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        tell(
            kind="card",
            name=str(index),
            card=name.value.decode(errors="replace"),
            capability=f"{major.value}.{minor.value}",
            memory_bytes=memory.value,
        )


def _name(cuda: Any, status: int) -> str:
    """Return ``CUDA_ERROR_NO_DEVICE`` of 100; empty for success."""
    if not status:
        return ""
    text = ctypes.c_char_p()
    if hasattr(cuda, "cuGetErrorName"):
        cuda.cuGetErrorName(status, ctypes.byref(text))
    return text.value.decode() if text.value else f"error {status}"


def _mapped() -> str:
    """Return the file of libcuda that is loaded; empty where the system hides it."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                path = line.split(None, 5)[5:]
                if path and "/libcuda.so" in path[0]:
                    return path[0].strip()
    except OSError:
        pass
    return ""


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
