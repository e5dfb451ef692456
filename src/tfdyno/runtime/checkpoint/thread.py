"""Work beside the training, one piece at a time, whose failure reaches the training's thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable


class Beside:
    """A thread for one piece of work at a time.

    The thread is waited for when the process ends in the usual way: what was begun is finished.
    """

    def __init__(self, doing: str) -> None:
        """Take ``doing``, which completes "… failed" where the work raises what nobody expected."""
        self._doing = doing
        self._thread: threading.Thread | None = None
        self._error: TfdynoError | None = None

    @property
    def busy(self) -> bool:
        """Whether a piece of work is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[], object]) -> None:
        """Begin a piece of work when the last one is done.

        Raises:
            TfdynoError: The last one failed; this one is not begun.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(work,), name="tfdyno-checkpoint")
        self._thread.start()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except TfdynoError as error:
            self._error = error
        except Exception as error:  # whatever it is, the training has to hear of it
            self._error = ToolError(f"{self._doing} failed", why=f"{type(error).__name__}: {error}")

    def wait(self) -> None:
        """Wait for the work.

        Raises:
            TfdynoError: It failed; raised once.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check()

    def check(self) -> None:
        """Raise what the work has failed with so far, once; never wait.

        Raises:
            TfdynoError: It failed.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error
