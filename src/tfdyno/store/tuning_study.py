"""The study of a tuning: Optuna's, in one SQLite file that a kill leaves whole."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

from tfdyno.core.codec import from_json, to_json
from tfdyno.core.errors import ToolError, UsageError
from tfdyno.core.search_space import SearchSpace, Value
from tfdyno.core.tuning import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FILE, NAME = "study.sqlite", "tfdyno"
INSTALL = 'pip install "tfdyno[tune]"'
_TRIAL, _QUESTION, _SPACE = "trial", "question", "space"
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


class TuningStudy:
    """One study. What Optuna chose is a ``Trial`` here, and each is stored before it is told."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        """Open the file, or make it.

        Args:
            folder: Exists.
            seed: Of the sampler; a study that goes on draws other numbers than before.

        Raises:
            UsageError: Optuna is not installed, or the file is something else.
            ToolError: The file cannot be written.
        """
        check_optuna()
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna = optuna
        self._asked: dict[int, Any] = {}
        with self._told(folder / FILE):
            storage = optuna.storages.RDBStorage(
                f"sqlite:///{(folder / FILE).absolute()}",
                engine_kwargs={"connect_args": {"timeout": 30}},
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
    def question(self) -> str:
        """What was asked, as ``begin`` was given it; empty: nothing yet."""
        return str(self._study.user_attrs.get(_QUESTION, ""))

    @property
    def space(self) -> SearchSpace | None:
        """Of the study; None: it has not begun."""
        kept = self._study.user_attrs.get(_SPACE)
        return from_json(kept.encode(), SearchSpace, where=FILE) if kept else None

    def begin(self, question: str, space: SearchSpace) -> None:
        """Keep what is asked and the space."""
        with self._written():  # the question last: with it the study has begun
            self._study.set_user_attr(_SPACE, to_json(space).decode())
            self._study.set_user_attr(_QUESTION, question)

    def trials(self) -> tuple[Trial, ...]:
        """All that ended, by number."""
        found = []
        for one in self._study.get_trials(deepcopy=False):
            if kept := one.user_attrs.get(_TRIAL):
                found.append(from_json(kept.encode(), Trial, where=FILE))
        return tuple(one for one in found if one.status != "running")

    def left_running(self) -> tuple[dict[str, Value], ...]:
        """End what a kill has left running, and give the values of each that has no answer yet.

        One whose answer was stored already is told with it. All others fail: they are to be asked
        again.
        """
        states, again = self._optuna.trial.TrialState, []
        for one in self._study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            kept = one.user_attrs.get(_TRIAL)
            found = from_json(kept.encode(), Trial, where=FILE) if kept else None
            if found and found.status != "running":
                self._tell(one.number, found)
                continue
            self._study.tell(one.number, state=states.FAIL)
            if one.params:
                again.append(dict(one.params))
        return tuple(again)

    def ask(self, space: SearchSpace) -> tuple[int, dict[str, Value]]:
        """The next trial: its number, and its place in the space."""
        kinds = self._optuna.distributions
        choices = {
            name: kinds.CategoricalDistribution(values) for name, values in space.choices.items()
        }
        with self._written():
            asked = self._study.ask(fixed_distributions=choices)
        self._asked[asked.number] = asked
        return asked.number, dict(asked.params)

    def enqueue(self, values: Mapping[str, Value]) -> None:
        """Let the next ``ask`` give these values."""
        with self._written():
            self._study.enqueue_trial(dict(values))

    def note(self, trial: Trial) -> None:
        """Store what is known of a trial that still runs."""
        with self._written():
            self._asked[trial.number].set_user_attr(_TRIAL, to_json(trial).decode())

    def report(self, number: int, run: int, samples_per_s: float) -> None:
        """Tell the middle of a running trial's first ``run`` runs; a second time counts nothing."""
        with self._written(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it was told already, by a bench that goes on
            self._asked[number].report(samples_per_s, run)

    def tell(self, trial: Trial) -> None:
        """End a trial: stored first, then told, so that a kill between loses nothing."""
        self.note(trial)
        with self._written():
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
    def _written(self) -> Iterator[None]:
        """Turn what the database says into a sentence; raises ``ToolError``."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (self._optuna.exceptions.StorageInternalError, SQLAlchemyError) as error:
            cause = getattr(error.__cause__, "orig", None) or getattr(error, "orig", None) or error
            why = str(cause).strip().splitlines()[0]
            raise ToolError("the study cannot be written", why=why) from None

    @contextlib.contextmanager
    def _told(self, file: Path) -> Iterator[None]:
        try:
            yield
        except (UsageError, ToolError):
            raise
        except Exception as error:  # SQLAlchemy and alembic have dozens of their own
            why = str(error).strip().splitlines()[0]
            raise UsageError(f"{file} cannot be used as a study", why=why,
                             remedy="name another folder") from None  # fmt: skip
