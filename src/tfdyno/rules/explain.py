"""From facts of a log and of a machine to an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.core.choose.software import Knowledge
from tfdyno.core.doctor.finding import Diagnosis, Finding
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.rules.causes import Cause, all_causes, cause
from tfdyno.rules.ranking import Ranked, root_first
from tfdyno.rules.values import values as known_values
from tfdyno.rules.wording import finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfdyno.core.base.language import Language
    from tfdyno.core.doctor.finding import Evidence
    from tfdyno.core.doctor.oom import OomReport
    from tfdyno.rules.log.explained import LogFacts
    from tfdyno.rules.match import Match

QUOTED_ERRORS = 5
_NOTES = {
    "no_error": {
        "en": "Nothing in this log looks like an error that tfdyno knows.",
        "zh": "日志中没有 tfdyno 能识别的错误。",
    },
    "unknown": {
        "en": "No known cause; line {number} looks like an error: {text}",
        "zh": "未找到已知原因；第 {number} 行像是错误：{text}",
    },
}


def diagnose(
    *,
    log: LogFacts | None = None,
    facts: MachineFacts | None = None,
    knowledge: Knowledge | None = None,
    found: Sequence[Match] = (),
    report: OomReport | None = None,
    language: Language = "en",
    causes: Iterable[Cause] | None = None,
    about_log: bool = True,
) -> Diagnosis:
    """Name the causes, root first, with evidence and fix.

    Args:
        log: What ``log.scan`` found; None where there is no log.
        facts: The machine; ``told.told_by_log`` adds what the log tells of it.
        knowledge: What the catalogue says of that TensorFlow and those cards.
        found: Matches of other rules: of the machine, of source code.
        report: Of exhausted memory, where the log holds one.
        language: Of all texts.
        causes: All that may be named; the shipped ones by default.
        about_log: Whether the log is what is asked about; where it is not, harmless lines clear
            the machine of nothing.

    Raises:
        ToolError: A match names a cause that the rules do not have.
    """
    facts, knowledge = facts or MachineFacts(), knowledge or Knowledge()
    if causes is None:  # without a log only those that were found: reading all takes long
        causes = all_causes() if log else map(cause, {one.cause for one in found})
    by_id = {one.id: one for one in causes}
    known = known_values(facts, knowledge)
    matches = tuple(found)
    if log is not None:
        matches = _of_log(log, matches, facts, knowledge, report, about_log=about_log)
    missing = next((one.cause for one in matches if one.cause not in by_id), "")
    if missing:
        raise ToolError(f"no cause '{missing}' in the rules")
    ranking = root_first(matches, by_id)
    findings = _worded(ranking.roots, by_id, known, language)
    is_explained = log is None or any(one.severity == "error" for one in findings)
    unexplained = () if log is None or is_explained else _unexplained(log, matches)
    return Diagnosis(
        findings=findings,
        ignored=_worded(ranking.harmless, by_id, known, language),
        notes=_notes(log, language) if log and not findings and not unexplained else (),
        unexplained=unexplained,
    )


def _of_log(
    log: LogFacts,
    found: tuple[Match, ...],
    facts: MachineFacts,
    knowledge: Knowledge,
    report: OomReport | None,
    *,
    about_log: bool,
) -> tuple[Match, ...]:
    # Imported here, for a look at the machine alone must start in a moment.
    from tfdyno.rules.log.matches import log_matches
    from tfdyno.rules.refine.memory import refine_with_report
    from tfdyno.rules.refine.refined import refine

    matches = log_matches(log, known_values(facts, knowledge))
    if about_log and matches and all(one.cause.startswith("harmless.") for one in matches):
        found = ()  # it shows no fault
    return refine_with_report(refine(matches + found, log, facts, knowledge), report, facts)


def _worded(
    ranked: tuple[Ranked, ...],
    causes: Mapping[str, Cause],
    known: Mapping[str, str],
    language: Language,
) -> tuple[Finding, ...]:
    return tuple(
        finding(causes[one.match.cause], one.match, known, language, one.symptoms) for one in ranked
    )


def _unexplained(log: LogFacts, matches: Sequence[Match]) -> tuple[Evidence, ...]:
    """Return the first errors that no match is of; a line that is taken for harmless is none."""
    from tfdyno.rules.log.matches import holding

    causes = {one.cause for one in matches}
    known = {line.number for hits in holding(log) if hits.cause in causes for line in hits.lines}
    unknown = [line for line in log.faults if line.number not in known]
    return tuple(line.evidence for line in unknown[:QUOTED_ERRORS])


def _notes(log: LogFacts, language: Language) -> tuple[str, ...]:
    errors = log.errors[:QUOTED_ERRORS]
    if not errors:
        return (_NOTES["no_error"][language],)
    text = _NOTES["unknown"][language]
    return tuple(text.format(number=one.number, text=one.text) for one in errors)
