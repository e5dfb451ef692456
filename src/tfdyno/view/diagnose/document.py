"""What a diagnosis brought, gathered for the terminal and for JSON with the documented keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.measure.fix_proof import FixProof, ProvenDiagnosis
from tfdyno.core.measure.measurement import Environment
from tfdyno.core.measure.memory_outlook import MemoryOutlook
from tfdyno.core.measure.step_facts import StepFacts
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.view.base.documents import fields_of
from tfdyno.words.base.language import say
from tfdyno.words.diagnose.told import note_words

if TYPE_CHECKING:
    from tfdyno.core.measure.bottleneck import Bottleneck, StepDiagnosis

_TIMES = ("split_s", "compute_s", "step_s", "held_s", "batch_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseReport:
    """A diagnosis as it is told."""

    proven: ProvenDiagnosis
    facts: StepFacts
    reference: str
    """The workload, as typed."""
    base: Recipe
    """The recipe without the fixes."""
    environment: Environment | None = None
    tried: bool = False
    """Whether fixes were asked to be proven."""
    arguments: tuple[str, ...] = ()
    """Words that stood behind the workload, without the fixes and what is asked of the answer."""
    own_arguments: tuple[str, ...] = ()
    """The same, of those that only this command knows."""
    written: tuple[str, ...] = ()
    """Files."""
    growth: tuple[MemoryOutlook, ...] = ()
    """The growth of memory, where it alone was asked for."""
    made_on: str = ""
    """ISO date; empty: not told."""
    look: str = ""
    """What is typed to look at the steps themselves, where a record was all there was."""

    def proof_of(self, one: Bottleneck) -> FixProof | None:
        """Return what came out of its fix; None: it was not tried."""
        return next((proof for proof in self.proven.proofs if proof.cause == one.cause), None)

    @property
    def kept(self) -> dict[str, object]:
        """Settings that were proven, by flat name."""
        return {name: new for name, (_, new) in diff(self.base, self.proven.recipe).items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What else is to be said, each once."""
        more = (*self.facts.notes, *self.proven.diagnosis.notes, self.proven.after_note)
        told = (note_words(note, self.facts.retreats) for note in filter(None, more))
        return tuple(dict.fromkeys(told))

    @property
    def samples_per_s(self) -> float:
        """Over all replicas; 0 where the batch is not known."""
        step_s = self.proven.diagnosis.step_s
        return self.samples_of_step / step_s if step_s > 0 else 0.0

    @property
    def samples_of_step(self) -> int:
        """Over all replicas; 0 where the batch is not known."""
        return self.facts.batch_size * max(1, self.facts.replica_count)


def told_of(diagnosis: StepDiagnosis, facts: StepFacts, reference: str) -> DiagnoseReport:
    """Say of what cannot be run again: a profile, or a record."""
    proven = ProvenDiagnosis(diagnosis=diagnosis, recipe=Recipe())
    return DiagnoseReport(proven=proven, facts=facts, reference=reference, base=Recipe())


def diagnose_document(told: DiagnoseReport) -> dict[str, Any]:
    """Write ``{"primary": {"class", "cause", …}, "findings": […], "split_s": {…}, …}``.

    ``evidence`` and ``fix`` are sentences and commands as a person reads them; ``steps`` has the
    sentence and the command of each step apart. Numbers that are not finite become null when it
    is written.
    """
    diagnosis, facts = told.proven.diagnosis, told.facts
    return {
        "primary": _finding(diagnosis.primary, told),
        "findings": [_finding(one, told) for one in diagnosis.findings],
        **fields_of(diagnosis, *_TIMES, "stages"),
        "after": _after(told.proven.after),
        "title": diagnosis.title,
        "workload": told.reference,
        "device": facts.device,
        "backend": facts.backend,
        "batch_size": facts.batch_size,
        "replicas": facts.replica_count,
        "steps": facts.steps_seen,
        "samples_per_s": told.samples_per_s,
        "kept": told.kept,
        "proofs": to_builtins(told.proven.proofs),
        "left": list(told.proven.left) if told.tried else [],
        "recipe": to_builtins(told.proven.recipe),
        "recipe_id": told.proven.recipe.id,
        "written": list(told.written),
        "made_on": told.made_on,
        "look": told.look,
        "notes": list(told.notes),
        "facts": to_builtins(facts),
        "environment": to_builtins(told.environment) if told.environment else None,
    }


def _after(after: StepDiagnosis | None) -> dict[str, Any] | None:
    """Say where the time goes with all that was kept; None: nothing was, or nobody looked again."""
    if after is None:
        return None
    return {
        **fields_of(after, *_TIMES),
        "primary": {"class": after.primary.bottleneck_class, "cause": after.primary.cause,
                    "summary": after.primary.summary},
    }  # fmt: skip


def _finding(one: Bottleneck, told: DiagnoseReport) -> dict[str, Any]:
    proof = told.proof_of(one)
    return {
        "class": one.bottleneck_class,
        "cause": one.cause,
        "severity": one.severity,
        "summary": one.summary,
        "evidence": [say(": ").join((seen.source, seen.text)) for seen in one.evidence],
        "fix": [
            say(": ").join(filter(None, (step.text.rstrip(".。"), step.command)))
            for step in one.fix
        ],
        "steps": to_builtins(one.fix),
        **fields_of(one, "expected_gain", "proven_gain", "settings", "place"),
        "kept": proof.kept if proof else None,
        "agrees": proof.agreement.agrees if proof and proof.agreement else None,
    }
