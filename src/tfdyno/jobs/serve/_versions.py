"""Which versions of a model are to be served, looked at again and again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.base.settings import whole
from tfdyno.jobs.deploy.model_reference import (
    check_stored,
    exported_first,
    fingerprint,
    is_servable,
    resolve,
)

if TYPE_CHECKING:
    from tfdyno.jobs.deploy.model_reference import ServedModel

ALL = "all"
LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A version to serve, in the state that its files have now."""

    version: int
    path: Path
    mark: str
    """Its fingerprint: another one is another state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Which of the versions that there are."""

    reference: str
    versions: str = LATEST
    """``latest``, ``all`` or numbers with commas."""

    def now(self) -> tuple[Wanted, ...]:
        """Return those to be served as of now, the default one first.

        Raises:
            UsageError: There is no such model or version, or it cannot be served.
        """
        model = resolve(self.reference)
        if not model.versions:
            raise exported_first(self.reference, "tfdyno serve")
        return tuple(
            _wanted(version, _servable(model, version)) for version in self._numbers(model)
        )

    def check(self, wanted: Wanted) -> None:
        """Read a version's files once before it is loaded; raises ``TfdynoError`` for damage."""
        check_stored(resolve(self.reference), wanted.version)

    def _numbers(self, model: ServedModel) -> list[int]:
        every = [number for number, _path in model.versions]
        known = [number for number, path in model.versions if is_servable(path)]
        if not known:
            known = every[-1:]  # it is told what that is
        first = model.promoted if model.promoted in every else known[-1]
        if self.versions == LATEST:
            return [first]
        if self.versions == ALL:
            wanted = sorted(known, reverse=True)
        else:
            wanted = sorted(named_versions(self.versions), reverse=True)
            for one in wanted:
                model.path_of(one)
        return [first, *(one for one in wanted if one != first)] if first in wanted else wanted


def _wanted(version: int, path: Path) -> Wanted:
    mark = fingerprint(path)
    return Wanted(version=version, path=path, mark=f"{version} {mark}" if mark else "")


def named_versions(text: str) -> list[int]:
    """Read ``1,3`` as numbers; raises ``UsageError``."""
    parts = [part.strip() for part in text.split(",")]
    return list(dict.fromkeys(whole(part, "version", most=2**62) for part in parts))


def _servable(model: ServedModel, version: int) -> Path:
    path = model.path_of(version)
    if not is_servable(path):
        raise UsageError(
            f"{model.name} version {version} is a {path.suffix} file",
            why="Triton runs TensorFlow's models here",
            remedy="serve a SavedModel or a .keras file",
        )
    return path


class Watch:
    """Sees what changes: a version counts once its files have stayed the same for a look."""

    def __init__(self, policy: Policy, first: tuple[Wanted, ...]) -> None:
        """Take what is served at the start."""
        self.policy = policy
        self._settled = self._seen = first

    def look(self) -> tuple[Wanted, ...]:
        """Return what is to be served; while files are written or gone, what was before."""
        try:
            now = self.policy.now()
        except TfdynoError:
            return self._settled
        if now == self._seen and all(one.mark for one in now):
            self._settled = now
        self._seen = now
        return self._settled
