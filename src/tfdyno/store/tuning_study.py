"""The study of a tuning: Optuna's, in one SQLite file that a kill leaves whole."""

from __future__ import annotations

import contextlib
import sqlite3
import warnings
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.measure.measurement import Environment
from tfdyno.core.train.search_space import SearchSpace, Value
from tfdyno.core.train.tuning import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FILE, NAME = "study.sqlite", "tfdyno"
LOCK_FILE = ".tune.lock"
INSTALL = 'pip install "tfdyno[tune]"'
_TRIAL, _QUESTION, _SPACE, _PLACE = "trial", "question", "space", "place"
_PATIENCE_S = 30.0
"""How long another process is waited for that holds the file."""
_STARTUP = 6
"""Trials at random before the sampler models what is fast."""
_COMPLETE = ("measured", "same")
_SLOWER = ("pruned", "not_fit", "hopeless")
"""Told to Optuna as pruned, which its sampler counts among the slow ones; the rest as failed, of
which it learns nothing."""


def check_optuna() -> None:
    """Refuse where Optuna is not installed, before any work; raises ``UsageError``."""
    import importlib.util

    if importlib.util.find_spec("optuna") is None:
        raise UsageError("tune needs Optuna, which is not installed", remedy=INSTALL)


def has_begun(folder: Path) -> bool:
    """Return whether the folder holds a study of which a question is known; nothing is written.

    A command that failed before its first trial leaves a file, but no study.
    """
    file = folder / FILE
    if not file.exists():
        return False
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True,
                                                timeout=_PATIENCE_S)) as database:  # fmt: skip
            asked = "SELECT count(*) FROM study_user_attributes WHERE key = ?"
            return bool(database.execute(asked, (_QUESTION,)).fetchone()[0])
    except sqlite3.Error:  # not Optuna's, or not yet: who opens it says so
        return False


def read_trials(folder: Path) -> tuple[Trial, ...]:
    """Return the trials that ended of a study that may be running; nothing is written.

    Optuna need not be installed. Empty where the file is no study, or not yet.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"{(folder / FILE).absolute().as_uri()}?mode=ro",
                                                uri=True, timeout=1.0)) as database:  # fmt: skip
            query = "SELECT value_json FROM trial_user_attributes WHERE key = ? ORDER BY trial_id"
            rows = database.execute(query, (_TRIAL,)).fetchall()
    except sqlite3.Error:
        return ()
    kept = (from_json(row.encode(), str, where=FILE) for (row,) in rows)
    found = tuple(from_json(one.encode(), Trial, where=FILE) for one in kept)
    return tuple(one for one in found if one.status != "running")


class TuningStudy:
    """One study. What Optuna chose is a ``Trial`` here, and each is stored before it is told."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        """Open the file, or make it.

        Args:
            folder: Exists.
            seed: Of the sampler; a study that goes on draws other numbers than before.

        Raises:
            UsageError: Optuna is not installed, or the file is something else.
            ToolError: The file cannot be written, or another process holds it.
        """
        check_optuna()
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna = optuna
        self._asked: dict[int, Any] = {}
        with self._told(folder / FILE):
            storage = optuna.storages.RDBStorage(
                f"sqlite:///{(folder / FILE).absolute()}",
                engine_kwargs={"connect_args": {"timeout": _PATIENCE_S}},
            )
            self._study = optuna.create_study(
                storage=storage, study_name=NAME, direction="maximize", load_if_exists=True,
                pruner=optuna.pruners.NopPruner(),
            )  # fmt: skip
            count = len(self._study.get_trials(deepcopy=False))
            self._study.sampler = optuna.samplers.TPESampler(
                seed=seed + count, multivariate=True, n_startup_trials=_STARTUP, constant_liar=True
            )

    @property
    def request(self) -> str:
        """What was asked, as ``begin`` was given it; empty: nothing yet."""
        return self._kept(_QUESTION)

    @property
    def space(self) -> SearchSpace | None:
        """The space of the study; None: it has not begun."""
        kept = self._kept(_SPACE)
        return from_json(kept.encode(), SearchSpace, where=FILE) if kept else None

    @property
    def place(self) -> Environment | None:
        """Where its trials are measured; None: it has not begun."""
        kept = self._kept(_PLACE)
        return from_json(kept.encode(), Environment, where=FILE) if kept else None

    def _kept(self, name: str) -> str:
        with self._used():
            return str(self._study.user_attrs.get(name, ""))

    def begin(self, request: str, space: SearchSpace, place: Environment) -> None:
        """Keep what is asked, the space and the place."""
        with self._used():  # the question last: with it the study has begun
            self._study.set_user_attr(_SPACE, to_json(space).decode())
            self._study.set_user_attr(_PLACE, to_json(place).decode())
            self._study.set_user_attr(_QUESTION, request)

    def trials(self) -> tuple[Trial, ...]:
        """Return all that ended, by number."""
        found = []
        with self._used():
            kept_ones = self._study.get_trials(deepcopy=False)
        for one in kept_ones:
            if kept := one.user_attrs.get(_TRIAL):
                found.append(from_json(kept.encode(), Trial, where=FILE))
        return tuple(one for one in found if one.status != "running")

    def left_running(self) -> tuple[dict[str, Value], ...]:
        """Let what a kill has left running be asked for again; gives the values of each.

        One whose answer was stored already is told with it. The others wait in the study itself
        before they fail there, so that another kill loses none.
        """
        states, again = self._optuna.trial.TrialState, []
        with self._used():
            left = self._study.get_trials(deepcopy=False, states=(states.RUNNING,))
        for one in left:
            kept = one.user_attrs.get(_TRIAL)
            found = from_json(kept.encode(), Trial, where=FILE) if kept else None
            with self._used():
                if found and found.status != "running":
                    self._tell(one.number, found)
                    continue
            if one.params:
                again.append(dict(one.params))
                self.enqueue(one.params)
            with self._used():
                self._study.tell(one.number, state=states.FAIL)
        return tuple(again)

    def ask(self, space: SearchSpace) -> tuple[int, dict[str, Value]]:
        """Return the next trial: its number, and its place in the space."""
        kinds = self._optuna.distributions
        choices = {
            name: kinds.CategoricalDistribution(values) for name, values in space.choices.items()
        }
        with self._used():
            asked = self._study.ask(fixed_distributions=choices)
        self._asked[asked.number] = asked
        return asked.number, dict(asked.params)

    def enqueue(self, values: Mapping[str, Value]) -> None:
        """Let an ``ask`` give these values before others; those that wait already wait once."""
        states = self._optuna.trial.TrialState
        with self._used():
            waiting = self._study.get_trials(deepcopy=False, states=(states.WAITING,))
            if not any(one.system_attrs.get("fixed_params") == dict(values) for one in waiting):
                self._study.enqueue_trial(dict(values))

    def give_back(self, number: int) -> None:
        """Let the values of a running trial be asked for again: what measured it is gone."""
        values = dict(self._asked.pop(number).params)
        self.enqueue(values)
        with self._used():
            self._study.tell(number, state=self._optuna.trial.TrialState.FAIL)

    def note(self, trial: Trial) -> None:
        """Store what is known of a trial that still runs."""
        with self._used():
            self._asked[trial.number].set_user_attr(_TRIAL, to_json(trial).decode())

    def report(self, number: int, run: int, samples_per_s: float) -> None:
        """Tell the middle of a running trial's first ``run`` runs; a second time counts nothing."""
        with self._used(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it was told already, by a bench that goes on
            self._asked[number].report(samples_per_s, run)

    def tell(self, trial: Trial) -> None:
        """End a trial: stored first, then told, so that a kill between loses nothing."""
        self.note(trial)
        with self._used():
            self._tell(trial.number, trial)
        self._asked.pop(trial.number, None)

    def _tell(self, number: int, trial: Trial) -> None:
        states = self._optuna.trial.TrialState
        if trial.status in _COMPLETE and trial.samples_per_s:
            self._study.tell(number, trial.samples_per_s)
        elif trial.status in _SLOWER:
            self._study.tell(number, state=states.PRUNED)
        else:
            self._study.tell(number, state=states.FAIL)

    @contextlib.contextmanager
    def _used(self) -> Iterator[None]:
        """Turn what the database says into a sentence; raises ``ToolError``."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (self._optuna.exceptions.StorageInternalError, SQLAlchemyError) as error:
            raise _locked(error) or ToolError("the study cannot be used", why=_why(error)) from None

    @contextlib.contextmanager
    def _told(self, file: Path) -> Iterator[None]:
        try:
            yield
        except (UsageError, ToolError):
            raise
        except Exception as error:  # SQLAlchemy and alembic have dozens of their own
            raise _locked(error) or UsageError(
                f"{file} cannot be used as a study", why=_why(error), remedy="name another folder"
            ) from None


def _why(error: BaseException) -> str:
    """Return the first line of what the database itself says."""
    cause = getattr(error.__cause__, "orig", None) or getattr(error, "orig", None) or error
    return str(cause).strip().splitlines()[0]


def _locked(error: BaseException) -> ToolError | None:
    """Return the sentence for a file that another process holds; None: that is not it."""
    if "locked" not in _why(error):
        return None
    return ToolError(
        f"{FILE} is locked", why=f"another process has held it for {_PATIENCE_S:.0f} s",
        remedy="end that one, and go on with --resume",
    )  # fmt: skip
