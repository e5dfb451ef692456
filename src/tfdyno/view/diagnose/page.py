"""The page of a diagnosis: the answer, its evidence and its proof, as one self-contained file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.recipe.recipe import diff
from tfdyno.view.base.template import page
from tfdyno.view.bench.tables import Pair, machine_rows
from tfdyno.view.choose.sections import Section, section
from tfdyno.view.diagnose import findings as diagnose_findings
from tfdyno.view.diagnose.document import diagnose_document
from tfdyno.view.diagnose.figure_course import course_figure
from tfdyno.view.diagnose.figure_split import compute_figure, split_figure
from tfdyno.view.diagnose.figure_stages import stages_figure
from tfdyno.view.diagnose.words import next_steps, proof_words, run_words
from tfdyno.words.base.amounts import capital
from tfdyno.words.base.language import say
from tfdyno.words.recipe.settings import value_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.measure.bottleneck import Bottleneck
    from tfdyno.view.diagnose.document import DiagnoseReport


def diagnose_page(told: DiagnoseReport) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript."""
    findings = told.proven.diagnosis.findings
    is_no_change = not told.proven.diagnosis.primary.asks_for_change
    return page_of(
        told,
        diagnose_document(told),
        answer=diagnose_findings.answer(told),
        box=diagnose_findings.box(told),
        step=diagnose_findings.step(told),
        split=split_figure(told),
        others=[told_finding(one, told) for one in findings[1:]],
        sections=_sections(told),
        findings=diagnose_findings.findings(told),
        rows=[] if is_no_change else [diagnose_findings.row(one, told) for one in findings],
        left=told.proven.left if told.tried else (),
        measured=diagnose_findings.measured(told),
    )


def page_of(told: DiagnoseReport, document: Mapping[str, Any], **own: Any) -> str:
    """Return what the page of every diagnosis has, filled.

    Args:
        told: What came out.
        document: The whole answer, kept in the page as JSON.
        own: What the template takes besides, of what was asked for.
    """
    diagnosis = told.proven.diagnosis
    primary = diagnosis.primary
    return page(
        "diagnose",
        document,
        reference=told.reference,
        setup=tuple(filter(None, (diagnosis.title, run_words(told.facts)))),
        date=told.made_on,
        headline=primary.summary.rstrip(".。"),
        primary=told_finding(primary, told),
        is_no_change=not primary.asks_for_change,
        tables=_tables(told),
        notes=told.notes,
        written=told.written,
        commands=[(typed, capital(purpose)) for _, purpose, typed in next_steps(told)],
        version=told.environment.tfdyno if told.environment else "",
        **({"split": None, "rows": (), "left": ()} | own),
    )


def told_finding(one: Bottleneck, told: DiagnoseReport) -> dict[str, Any]:
    """Return one finding with what came out of its fix."""
    proof = told.proof_of(one)
    return {
        "cause": one.cause,
        "place": one.place,
        "summary": one.summary,
        "evidence": one.evidence,
        "fix": one.fix,
        "proof": proof_words(proof) if proof else None,
    }


def _sections(told: DiagnoseReport) -> tuple[Section, ...]:
    """Return those that have something to show."""
    diagnosis, timeline, found = told.proven.diagnosis, told.facts.timeline, list[Section]()
    if drawing := compute_figure(diagnosis):
        finding = diagnose_findings.computing(diagnosis)
        found.append(section("computing", say("Computing"), finding, drawing))
    if timeline and (drawing := course_figure(timeline, diagnosis)):
        finding = diagnose_findings.course(timeline)
        found.append(section("course", say("Over time"), finding, drawing))
    samples = told.samples_of_step
    if drawing := stages_figure(diagnosis, samples):
        finding = diagnose_findings.stages(diagnosis, samples)
        found.append(section("stages", say("Input pipeline"), finding, drawing))
    return tuple(found)


def _tables(
    told: DiagnoseReport,
) -> tuple[tuple[str, str, str, tuple[Pair, ...], tuple[str, ...]], ...]:
    """Return id, name, heading, rows and sides of each."""
    found: list[tuple[str, str, str, tuple[Pair, ...], tuple[str, ...]]] = []
    changes = diff(told.base, told.proven.recipe)
    if changes:
        rows = tuple(Pair(name=name, values=(value_words(name, old), value_words(name, new)))
                     for name, (old, new) in changes.items())  # fmt: skip
        sides = (say("As it is"), say("Kept"))
        found.append(
            ("kept", say("Settings"), say("What was kept, as settings of a recipe"), rows, sides)
        )
    if told.environment:
        machine = machine_rows([told.environment])
        found.append(("place", say("Environment"), say("Where it was looked at"), machine, ("",)))
    return tuple(found)
