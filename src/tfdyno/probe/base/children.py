"""Child processes that load NVIDIA's libraries, which may crash or hang."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tfdyno.core.base.dataclass import dataclass

if TYPE_CHECKING:
    import subprocess  # noqa: TC004  (imported where a child is started)
    from collections.abc import Mapping

    from tfdyno.core.messages.nvidia import Told  # noqa: TC004  (made where a child has told)
    from tfdyno.probe.base.host import Host

Noun = TypeVar("Noun")
FOLDER = Path(__file__).parent
MARK = "tfdyno:"
HIDDEN = ("CUDA_VISIBLE_DEVICES",)
"""Taken from the children: with it a good driver looks as if it had no card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a child told before it ended, in whatever way."""

    started: bool = False
    reason: str = ""
    """Why nothing was started, or why the child did not end well; empty when all is told."""
    told: tuple[Told, ...] = ()

    def every(self, kind: type[Noun]) -> tuple[Noun, ...]:
        """Return the answers of one kind."""
        return tuple(one for one in self.told if isinstance(one, kind))

    def one(self, kind: type[Noun]) -> Noun | None:
        """Return the answer of a kind that is told once; None where it is missing."""
        return next(iter(self.every(kind)), None)


@dataclass(slots=True, kw_only=True)
class Child:
    """A started child, or the reason why there is none."""

    name: str
    process: subprocess.Popen[str] | None = None
    reason: str = ""
    began_s: float = 0.0

    def answers(self, limit_s: float) -> Answers:
        """Wait until ``limit_s`` after the start, then read what was told; never raises."""
        if self.process is None:
            return Answers(reason=self.reason)
        import subprocess

        left_s = max(0.0, self.began_s + limit_s - time.monotonic())
        reason = ""
        try:
            output, errors = self.process.communicate(timeout=left_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, errors = self.process.communicate()
            reason = f"{self.name} did not answer within {limit_s:g} s"
        except (OSError, ValueError) as error:
            return Answers(started=True, reason=f"{self.name}: {error}")
        told, strange = _parsed(output)
        if not reason and self.process.returncode:
            last = (errors.strip().splitlines() or [""])[-1]
            reason = f"{self.name} ended with exit code {self.process.returncode}"
            reason += f": {last}" if last else ""
        if strange and not reason:
            reason = f"{self.name} told what nobody here understands: {strange}"
        return Answers(started=True, reason=reason, told=told)

    def stop(self) -> None:
        """End the child where it still runs."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            with contextlib.suppress(OSError, ValueError):
                self.process.communicate()


def start(name: str, script: str, host: Host, request: Mapping[str, Any]) -> Child:
    """Start one of this package's scripts in the interpreter that is asked about.

    Args:
        name: What the child does, for messages.
        script: File name beside this module; it uses the standard library only.
        host: Its interpreter is used, for its own folders of libraries count.
        request: JSON, handed over as the only argument.
    """
    import json
    import subprocess

    variables = {key: value for key, value in host.environment.items() if key not in HIDDEN}
    command = [host.python, "-I", "-S", str(FOLDER / script), json.dumps(request)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=variables,
            cwd=os.sep,
        )
    except OSError as error:
        return Child(name=name, reason=f"{name} cannot be started: {error.strerror or error}")
    return Child(name=name, process=process, began_s=time.monotonic())


def _parsed(output: str) -> tuple[tuple[Told, ...], str]:
    """Read the marked lines; the first that is no answer is told as well.

    Libraries print their own lines between them, and a crash may cut the last one.
    """
    import json

    from tfdyno.core.messages.nvidia import KINDS
    from tfdyno.core.messages.wire import decode

    told, strange = [], ""
    for line in output.splitlines():
        if line.startswith(MARK):
            try:
                answer = json.loads(line[len(MARK) :])
            except ValueError:
                continue
            try:
                told.append(decode(answer, KINDS[answer.pop("kind")]))
            except (LookupError, TypeError, AttributeError):
                strange = strange or line[len(MARK) :]
    return tuple(told), strange
