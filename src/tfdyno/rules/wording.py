"""A match in words: the texts of its cause, filled with what is known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.core.doctor.finding import Finding, FixStep
from tfdyno.rules.condition import holds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfdyno.core.base.language import Language
    from tfdyno.rules.causes import Cause, CauseStep, Words
    from tfdyno.rules.match import Match

NAME = re.compile(r"(?<!\$)\{([a-z][a-z0-9_]*)\}")
"""A name to fill in; ``${VARIABLE}`` of a shell is left alone."""


def finding(
    cause: Cause,
    match: Match,
    values: Mapping[str, str],
    language: Language = "en",
    symptoms: Sequence[str] = (),
) -> Finding:
    """Put a match into words.

    Args:
        cause: The cause that the match names.
        match: What speaks for it; its values win over ``values``.
        values: What is known of the machine, as ``values.values`` gives it.
        language: Of all texts; commands are the same in every language.
        symptoms: Ids of causes that this one explains.

    Raises:
        ToolError: No step of the fix applies, which is a fault of the rules.
    """
    known = {**values, **match.values}
    fix = tuple(steps(cause.fix, known, language))
    if not fix:
        raise ToolError(f"no step of the fix of {cause.id} applies")
    return Finding(
        cause=cause.id,
        verdict=match.verdict,
        severity=cause.severity,
        summary=_sentence(cause.title, known, language),
        why=_sentence(cause.why, known, language),
        evidence=match.evidence,
        fix=fix,
        harmless=cause.harmless,
        symptoms=tuple(symptoms),
        link=cause.link,
        count=match.count,
    )


def steps(
    fix: Sequence[CauseStep], known: Mapping[str, str], language: Language = "en"
) -> Iterator[FixStep]:
    """Yield the steps that apply, of each choice the first; none with unknown names."""
    chosen: set[str] = set()
    for step in fix:
        if step.choice in chosen or not holds(step.when, known):
            continue
        text = fill(text_in(step.text, language), known) if step.text else ""
        command = fill(step.command, known)
        if text is None or command is None:
            continue
        if step.choice:
            chosen.add(step.choice)
        yield FixStep(text=text, command=command)


def fill(text: str, known: Mapping[str, str]) -> str | None:
    """Return the first variant whose names are all known, filled; None where there is none."""
    for variant in text.split("||"):
        names = NAME.findall(variant)
        if all(known.get(name) for name in names):
            return NAME.sub(lambda found: known[found[1]], variant).strip()
    return None


def _sentence(words: Words, known: Mapping[str, str], language: Language) -> str:
    text = text_in(words, language)
    filled = fill(text, known)
    if filled is None:
        return NAME.sub(lambda found: known.get(found[1], "?"), text.split("||")[-1]).strip()
    return filled


def text_in(words: Words, language: Language) -> str:
    """Return a text in a language, with its variants and unfilled."""
    return words.zh if language == "zh" else words.en
