"""A tuning as JSON: every trial with its status, the fastest, the proof."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.words.train.tune import headline
from tfdyno.words.train.tune_notes import (
    device_name_words,
    note_words,
    reason_words,
    uncompared_words,
)

if TYPE_CHECKING:
    from tfdyno.core.measure.fix_proof import FixProof
    from tfdyno.core.train.tuning import Trial, Tuning

VERSION = 1


def tune_document(told: Tuning, *, folder: str = "", made_at: str = "") -> dict[str, Any]:
    """Return what ``--json`` prints and ``tuning.json`` holds; keys stay, new ones may come.

    Args:
        told: What came out.
        folder: Of the study.
        made_at: ISO 8601.
    """
    best = told.trial(told.best) if told.best is not None else None
    return {
        "version": VERSION,
        "headline": headline(told),
        "workload": told.reference,
        "title": told.title,
        "backend": told.backend,
        "device": told.device,
        "device_name": device_name_words(told.device_name),
        "planned_for": told.planned_for,
        "start": _settings(told.start),
        "recipe": _settings(told.recipe),
        "recipe_id": told.recipe.id,
        "is_proven": bool(told.proof and told.proof.kept),
        "changes_batch": bool(best and best.changes_batch and best.recipe == told.recipe),
        "best": trial_document(best) if best else None,
        "proof": _proof(told.proof) if told.proof else None,
        "proof_ratio": told.proof.ratio if told.proof and told.proof.ratio else None,
        "proof_interval": list(told.proof.interval) if told.proof and told.proof.ratio else None,
        "trials": [trial_document(one) for one in told.trials],
        "counts": told.counts(),
        "space": {name: list(values) for name, values in told.space.choices.items()},
        "space_size": told.space.size,
        "left": told.left,
        "ended": told.ended,
        "asked_trials": told.asked_trials,
        "runs_per_trial": told.runs,
        "confidence_ratio": told.confidence_ratio,
        "spread_ratio": told.spread_ratio,
        "engine": told.engine,
        "uncompared": uncompared_words(told.uncompared),
        "notes": [note_words(one, told.trials) for one in told.notes],
        "folder": folder,
        "made_at": made_at,
    }


def trial_document(one: Trial) -> dict[str, Any]:
    """Return one trial; what was not measured is null."""
    expected = one.estimate
    return {
        "number": one.number,
        "status": one.status,
        "ran": one.ran,
        "reason": reason_words(one.reason),
        "changes": one.changes,
        "batch_size": one.batch_size or None,
        "changes_batch": one.changes_batch,
        "samples_per_s": one.samples_per_s or None,
        "interval_per_s": list(one.interval_per_s) if any(one.interval_per_s) else None,
        "rates_per_s": list(one.rates_per_s),
        "peak_memory_bytes": one.peak_memory_bytes or None,
        "same_as": one.same_as,
        "measurement": one.measurement,
        "retreats": to_builtins(one.retreats),
        "where": one.where,
        "expected": {
            "made_by": expected.made_by,
            "samples_per_s": to_builtins(expected.samples_per_s),
            "memory_bytes": to_builtins(expected.memory_bytes),
            "limit_bytes": expected.limit_bytes or None,
        }
        if expected
        else None,
    }


def _proof(proof: FixProof) -> object:
    return to_builtins(replace(proof, reason=reason_words(proof.reason)))


def _settings(recipe: Recipe) -> dict[str, object]:
    """Return what is not as the script has it, by flat name."""
    return {name: value for name, (_, value) in diff(Recipe(), recipe).items()}
