"""The index of symptoms: nothing a user meets is missing, and every line of it leads somewhere."""

from __future__ import annotations

import csv
import re
import shlex
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.test_docs_commands import wrong

from score_doctor import answer
from tfdyno.rules.causes import all_causes

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
HOW_TO = DOCS / "how-to"
INDEX = HOW_TO / "symptoms.md"
ARTICLES = DOCS / "explanation" / "older-articles.md"
DATA = Path(__file__).parent / "data"
ROW = re.compile(
    r"^\| (?P<seen>.+?) \| \[[^\]]*\]\((?P<target>[^)]+)\) \| `(?P<command>[^`]+)` \|$"
)
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)#([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}).*?^\1$", re.S | re.M)
VERDICTS = {
    "true", "false", "outdated", "partly", "misleading", "heuristic", "unverified", "unsupported",
    "plausible", "weak",
}  # fmt: skip


class Line(NamedTuple):
    """One line of the index."""

    section: str
    seen: str
    target: str
    command: str


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lines() -> list[Line]:
    """Every line of the index, with the heading above it."""
    found, section = [], ""
    for text in INDEX.read_text(encoding="utf-8").splitlines():
        if text.startswith("## "):
            section = text.removeprefix("## ")
        elif match := ROW.match(text):
            found.append(Line(section, *match.group("seen", "target", "command")))
    return found


SYMPTOMS = rows("symptoms.csv")
CLAIMS = rows("claims.csv")
LINES = lines()


@cache
def places(page: Path) -> frozenset[str]:
    """What a link may name in a page: its headings as the site writes them, and its own marks."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return frozenset({slug(one) for one in headings} | set(ANCHOR.findall(text)))


def slug(heading: str) -> str:
    """The anchor of a heading, as Python-Markdown's table of contents makes it."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)|<[^>]*>", r"\1", heading)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", words).strip().lower())


def test_every_symptom_has_its_line_and_every_line_its_source() -> None:
    assert [(line.section, line.seen) for line in LINES] == [
        (row["section"], row["symptom"]) for row in SYMPTOMS
    ]
    assert [row["symptom"] for row in SYMPTOMS if not row["source"]] == []


def test_no_row_of_the_index_is_written_so_that_it_is_not_read() -> None:
    text = INDEX.read_text(encoding="utf-8")
    written = [line for line in text.splitlines() if line.startswith("| ")]
    heads = [line for line in written if line.startswith(("| what you see", "| ---"))]
    assert len(written) - len(heads) == len(LINES)


def test_no_symptom_stands_twice_in_a_section() -> None:
    assert len({(line.section, line.seen) for line in LINES}) == len(LINES)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.seen[:60])
def test_a_line_leads_to_a_place_in_a_page(line: Line) -> None:
    path, _, place = line.target.partition("#")
    page = (INDEX.parent / path).resolve()
    assert page.is_file()
    assert not place or place in places(page)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.seen[:60])
def test_a_line_names_a_command_that_exists(line: Line) -> None:
    program, *words = shlex.split(line.command)
    assert program == "tfdyno"
    assert wrong(words) == []


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_to_a_place_that_is_there(page: Path) -> None:
    missing = []
    for path, place in LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / path).resolve() if path else page
        if target.suffix == ".md" and place not in places(target):
            missing.append(f"{path}#{place}")
    assert missing == []


def test_every_cause_of_the_doctor_and_every_class_of_diagnose_has_a_line() -> None:
    named = {row["cause"] for row in SYMPTOMS}
    assert {one.id for one in all_causes()} - named == set()
    bottlenecks = ROOT / "src" / "tfdyno" / "rules" / "bottleneck" / "data"
    assert {path.stem for path in bottlenecks.glob("*.toml")} - named == set()


@pytest.mark.parametrize(
    "row", [row for row in SYMPTOMS if row["message"]], ids=lambda row: row["cause"]
)
def test_the_doctor_names_the_cause_of_a_message(row: dict[str, str]) -> None:
    told = dict(pair.split("=", 1) for pair in row["machine"].split("; ") if pair)
    said = answer({"log": row["message"], "env": told})
    assert (said.findings + said.ignored)[0].cause == row["cause"]
    quoted = re.findall(r"`` ?(.+?) ?``|`([^`]+)`", row["symptom"])
    shown = [one or other for one, other in quoted]
    assert any(text.lower() in row["message"].lower() for text in shown) or not shown


def test_every_checked_claim_of_the_guides_is_answered_with_a_source() -> None:
    cells = [
        [cell.strip() for cell in text.strip("|").split(" | ")]
        for text in ARTICLES.read_text(encoding="utf-8").splitlines()
        if text.startswith("| ") and not text.startswith(("| statement", "| ---"))
    ]
    answered = {row[0]: row for row in cells}
    assert all(len(row) == 3 and all(row) for row in cells)
    assert [row["number"] for row in CLAIMS] == [str(n) for n in range(1, len(CLAIMS) + 1)]
    assert [row["number"] for row in CLAIMS if row["answer"] not in answered] == []
    assert {row["verdict"] for row in CLAIMS} <= VERDICTS
    assert all(row["source"] for row in CLAIMS)
