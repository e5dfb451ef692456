"""A browser that a test moves by hand: Chromium without a window, told by its own protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or ""
PATIENCE_S = 120.0
PIPED = """
import fcntl, os, sys
given = [fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3]]
for one, wanted in zip(given, (3, 4)):
    os.dup2(one, wanted)
    os.close(one)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Becomes the browser, which reads commands from 3 and answers on 4."""


class Page:
    """One tab; what is typed, clicked and read goes through the pipes 3 and 4 of the browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._last, self._left, self._session = 0, b"", ""
        self.problems: list[str] = []
        """Errors and warnings of scripts and of the page's policy."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for part in ("Page", "Runtime", "Log"):
            self.ask(f"{part}.enable")

    def ask(self, method: str, **values: object) -> dict[str, Any]:
        """Call a method of the protocol and wait for its result."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": values}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._last:
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result
            self._note(told)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            assert select.select([self._from], [], [], PATIENCE_S)[0], "the browser says nothing"
            more = os.read(self._from, 1 << 20)
            assert more, "the browser ended"
            self._left += more
        one, _, self._left = self._left.partition(b"\0")
        told: dict[str, Any] = json.loads(one)
        return told

    def _note(self, told: dict[str, Any]) -> None:
        values = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(values["exceptionDetails"])[:500])
        elif told.get("method") == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.problems.append(values["entry"]["text"])

    def close(self) -> None:
        """End the browser, which then leaves its folder alone."""
        self._session = ""
        self.ask("Browser.close")

    def run(self, code: str) -> Any:  # noqa: ANN401  (as JSON has it)
        """Run the body of an async function in the page, and give back what it returns."""
        found = self.ask(
            "Runtime.evaluate", expression=f"(async () => {{ {code} }})()",
            awaitPromise=True, returnByValue=True, userGesture=True,
        )  # fmt: skip
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, code: str) -> None:
        """Wait until an expression is true; while one page takes another's place it is not."""
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            with contextlib.suppress(AssertionError):
                if self.run(f"return Boolean({code});"):
                    return
            time.sleep(0.05)
        raise TimeoutError(f"{code} never came")

    def open(self, url: str) -> None:
        """Load an address."""
        self.ask("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def size(self, width_px: int, height_px: int, *, dark: bool = False) -> None:
        """Set the window, down to that of a phone, and the colours that its user prefers."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width_px, height=height_px,
                 deviceScaleFactor=1, mobile=width_px < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def key(self, name: str, code: int) -> None:
        """Press and release a key."""
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                     windowsVirtualKeyCode=code)  # fmt: skip

    def shoot(self, file: Path) -> None:
        """Take a picture of the whole page."""
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(found["data"]))


@contextlib.contextmanager
def page(folder: Path) -> Iterator[Page]:
    """Start a browser with a profile in a folder, and end it."""
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()

    browser = subprocess.Popen(
        [sys.executable, "-c", PIPED, str(command_read), str(answer_write),
         BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars",
         f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe"],
        pass_fds=(command_read, answer_write),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(command_read)
    os.close(answer_write)
    try:
        opened = Page(command_write, answer_read)
        yield opened
        opened.close()
        browser.wait(PATIENCE_S)
    finally:
        browser.kill()
        browser.wait()
        os.close(command_write)
        os.close(answer_read)
