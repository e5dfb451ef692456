"""Every sentence that the code says has a Chinese one, and a command speaks one language."""

from __future__ import annotations

import ast
import csv
import re
import string
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe_file import HEAD
from tfdyno.core.recipe.recipe_words import MEANINGS
from tfdyno.core.recipe.retreat import CRASHED
from tfdyno.words.base import amounts, holders, language
from tfdyno.words.base.language import (
    CONTEXT,
    joined,
    language_of_reader,
    retold,
    say,
    say_later,
    speaking,
    spoken,
)
from tfdyno.words.bench import told as bench_told
from tfdyno.words.choose import explanation
from tfdyno.words.diagnose import told as diagnose_told
from tfdyno.words.train import notes as train_notes
from tfdyno.words.train import tune_notes

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parents[3] / "src" / "tfdyno"
TRANSLATED = (
    "words/base/amounts.py",
    "words/bench/comparison.py",
    "words/bench/load.py",
    "words/bench/measurement.py",
    "words/bench/told.py",
    "view/bench/compare_text.py",
    "view/bench/figure_ratio.py",
    "view/bench/figure_samples.py",
    "view/bench/figure_steps.py",
    "view/bench/figure_telemetry.py",
    "view/bench/figure_load.py",
    "view/bench/findings.py",
    "view/bench/load_page.py",
    "view/bench/load_text.py",
    "jobs/bench/_load_doubts.py",
    "view/bench/page.py",
    "view/bench/runs.py",
    "view/bench/tables.py",
    "view/bench/telemetry_lanes.py",
    "view/bench/text.py",
    "model/choose/price_performance.py",
    "model/measure/comparison.py",
    "model/measure/instability.py",
    "model/measure/same_results.py",
    "words/choose/advice.py",
    "words/choose/backends.py",
    "words/choose/changes.py",
    "words/choose/explanation.py",
    "words/choose/hours.py",
    "words/choose/kernels.py",
    "words/choose/fits.py",
    "words/choose/offers.py",
    "words/choose/prices.py",
    "words/choose/reasons.py",
    "words/choose/serving_size.py",
    "words/memory/basis.py",
    "words/memory/plan.py",
    "view/choose/_estimates.py",
    "view/choose/advice_text.py",
    "view/choose/backends_page.py",
    "view/choose/backends_text.py",
    "view/choose/basis.py",
    "view/choose/cards.py",
    "view/choose/estimate_text.py",
    "view/choose/explanation_table.py",
    "view/choose/explanation_text.py",
    "view/choose/figure_cost.py",
    "view/choose/figure_roofline.py",
    "view/choose/figure_scale_out.py",
    "view/choose/figure_serving.py",
    "view/choose/figures.py",
    "view/choose/html.py",
    "view/choose/ranking.py",
    "view/choose/ranking_text.py",
    "view/choose/scale_out_text.py",
    "view/choose/sections.py",
    "view/choose/sentences.py",
    "view/choose/serving_size_page.py",
    "view/choose/serving_size_text.py",
    "view/choose/sharding_text.py",
    "view/choose/step_sentences.py",
    "view/draw/figure_memory.py",
    "view/draw/layers.py",
    "view/lookup/gpus_text.py",
    "view/lookup/offers_text.py",
    "view/memory/figure_held.py",
    "view/memory/page.py",
    "view/memory/text.py",
    "view/base/recipe_text.py",
    "jobs/recipe/_reasons.py",
    "words/base/holders.py",
    "view/train/layout_text.py",
    "view/train/preview_text.py",
    "view/train/progress.py",
    "view/train/text.py",
    "view/train/tune_text.py",
    "words/recipe/retreats.py",
    "words/recipe/settings.py",
    "words/train/nan.py",
    "words/train/notes.py",
    "words/train/tune.py",
    "words/train/tune_document.py",
    "words/train/tune_notes.py",
    "jobs/train/backend.py",
    "jobs/train/preview.py",
    "jobs/choose/_anchors.py",
    "jobs/choose/_compose.py",
    "jobs/choose/_feeding.py",
    "jobs/choose/exact.py",
    "jobs/choose/verify.py",
    "jobs/choose/_serving_answer.py",
    "jobs/choose/_sharded.py",
    "jobs/choose/picks.py",
    "jobs/memory/_plan.py",
    "jobs/memory/_weighing.py",
    "jobs/choose/foretold.py",
    "view/diagnose/course.py",
    "view/diagnose/document.py",
    "view/diagnose/figure_course.py",
    "view/diagnose/figure_growth.py",
    "view/diagnose/figure_split.py",
    "view/diagnose/figure_stages.py",
    "view/diagnose/findings.py",
    "view/diagnose/growth_page.py",
    "view/diagnose/growth_text.py",
    "view/diagnose/page.py",
    "view/diagnose/text.py",
    "view/diagnose/words.py",
    "rules/bottleneck/callback.py",
    "rules/bottleneck/card.py",
    "rules/bottleneck/communication.py",
    "rules/bottleneck/compute.py",
    "rules/bottleneck/draft.py",
    "rules/bottleneck/growth.py",
    "rules/bottleneck/host.py",
    "rules/bottleneck/input_flow.py",
    "rules/bottleneck/input_stage.py",
    "rules/bottleneck/input_work.py",
    "rules/bottleneck/launch.py",
    "rules/bottleneck/leak.py",
    "rules/bottleneck/memory_bandwidth.py",
    "rules/bottleneck/placement.py",
    "rules/bottleneck/rank.py",
    "rules/bottleneck/retrace.py",
    "words/diagnose/steps.py",
    "words/diagnose/told.py",
    "jobs/diagnose/_recorded.py",
    "jobs/diagnose/fixes.py",
    "jobs/diagnose/profile.py",
    "jobs/diagnose/recorded_run.py",
)
"""Modules of which every sentence reaches the reader of a command that speaks Chinese."""
PAGES = (
    "page.html.j2",
    "parts.html.j2",
    "report.html.j2",
    "ranking.html.j2",
    "memory.html.j2",
    "serving_size.html.j2",
    "backends.html.j2",
    "bench.html.j2",
    "diagnose.html.j2",
    "load.html.j2",
)
WORDS = {
    "page.html.j2": [],
    "parts.html.j2": [],
    "report.html.j2": ["advise"],
    "ranking.html.j2": ["ms"],
    "memory.html.j2": ["memory"],
    "serving_size.html.j2": ["advise"],
    "backends.html.j2": ["advise"],
    "bench.html.j2": ["bench"],
    "diagnose.html.j2": ["diagnose"],
    "load.html.j2": ["bench"],
}
"""What stands in the templates and is the same in every language."""
SAYING = {"say", "say_later", "named", "plural", "freed", "evidence", "quoted"}
SENTENCES = {"say": (0,), "say_later": (0,), "evidence": (0, 1), "quoted": (1,)}
"""Which arguments are keys of the tables."""
NOT_SAID = {
    "very old", "timed out", "connection lost", "wrong answer",
    "too late", "too dear", "no offer", "does not fit", "cannot run", "may not", "probably not",
    "on demand", "batch per replica", "global batch", "no spot instances", "input that keeps up",
    "no deadline", "no budget", "no CUDA graphs", " x ", " × ", " · ", " GiB · ",
    "tensor parallel", "too slow", "batch statistics", "as asked",
    "adapters alone", "rounded weights", "shorter samples",
    " fits {} on the JAX backend at no batch that was weighed",
    "how much has to be computed again is planned for TensorFlow's steps alone",
    "try --set remat=blocks; tfdyno memory --plan says what else there is",
    " --output size.json", " --spare 1", "own price", "price and speed",
    "a page needs a workload with a card",
    " --batch-size {} --precision ",
    '{"event": "layout"', "a layout", "precision = float8",
    "It is not faster: ", "It is faster. Losses were not compared: ", " is not the answer. ",
    "Trial {}: ", " does not fit {} at any batch", "Whether it fits",
    "weights, gradients and optimizer alone hold ",
    "need one measurement, or two and their comparison, got ",
    "other callbacks", "the texts of {} do not fit what was found",
}  # fmt: skip
"""States that nouns carry as data, and what stands between figures."""


def literals(node: ast.expr) -> Iterator[str]:
    """Yield what a first argument may be: a text, or one of two."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from literals(node.body)
        yield from literals(node.orelse)


def of_tables() -> dict[str, str]:
    """Sentences that stand in tables of lower layers, which cannot mark them."""
    faults = SOURCE / "rules" / "compiler" / "data"
    titles = [one["title"] for one in tomllib.loads((faults / "faults.toml").read_text()).values()
              if "title" in one]  # fmt: skip
    steps = csv.DictReader((faults / "steps.csv").read_text().splitlines())
    found = dict.fromkeys([*titles, CRASHED], "faults.toml")
    found |= dict.fromkeys((step["words"] for step in steps), "steps.csv")
    return found | dict.fromkeys([*MEANINGS.values(), HEAD], "recipe_words.py")


@cache
def said() -> dict[str, str]:
    """Every sentence that the code says, with the file that does."""
    found: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        text, name = path.read_text(), path.relative_to(SOURCE).as_posix()
        nouns = [] if "plural" not in text else ["plural"]
        says = "words.base.language import" in text or "bottleneck.draft import" in text
        if not says and not nouns:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if says and node.args:
                for at in SENTENCES.get(called, ()):
                    found |= dict.fromkeys(literals(node.args[at]), name)
            if called == "plural" and len(node.args) > 1 and name in TRANSLATED:
                found |= {f"{{number}} {noun}": name for noun in literals(node.args[1])}
    found |= of_tables()
    for path in sorted(SOURCE.glob("view/templates/*.j2")):
        for match in re.finditer(r'say\("([^"]*)"', path.read_text()):
            found[match[1]] = path.name
    return found


@cache
def table() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted((SOURCE / "words" / "zh").glob("*.toml")):
        one = tomllib.loads(path.read_text("utf-8"))
        assert set(one) & set(found) == set(), path
        found |= one
    return found


def test_every_sentence_has_a_chinese_one() -> None:
    missing = {sentence: file for sentence, file in said().items() if sentence not in table()}
    assert missing == {}


def test_no_chinese_sentence_is_left_of_an_english_one_that_went() -> None:
    left = {one for one in table() if one not in said()}
    assert {one for one in left if not one.startswith("{number} ")} == set()


def figures_of(sentence: str) -> set[tuple[str, str | None]]:
    parts = string.Formatter().parse(sentence)
    return {(name, form) for _, name, form, _ in parts if name is not None}


def test_both_say_the_same_figures_in_the_same_form() -> None:
    wrong = {en: zh for en, zh in table().items() if figures_of(en) != figures_of(zh)}
    assert wrong == {}


def test_no_chinese_sentence_is_english() -> None:
    same = {en for en, zh in table().items() if en == zh and re.search("[a-z]{3}", en)}
    assert same == {"Roofline"} & same


class Unsaid(ast.NodeVisitor):
    """Find texts with a blank in them, as sentences have, that ``say`` does not see."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Call(self, node: ast.Call) -> None:
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        for one in [*node.args, *(keyword.value for keyword in node.keywords)]:
            if called not in SAYING or not any(literals(one)):
                self.visit(one)
        self.visit(node.func)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        words = [one.value for one in node.values if isinstance(one, ast.Constant)]
        self.note("{}".join(map(str, words)))
        for one in node.values:
            if isinstance(one, ast.FormattedValue):
                self.visit(one.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.note(node.value)

    def note(self, text: str) -> None:
        plain = re.sub(r"\b(GiB|GB|ms|min|h|FLOP|TFLOP/s|tfdyno .*|--\S+)", "", text)
        if " " in text.strip() and re.search("[a-z]{2,}", plain) and text not in NOT_SAID:
            self.found.append(text)


@pytest.mark.parametrize("module", TRANSLATED)
def test_a_translated_module_says_all_its_sentences(module: str) -> None:
    """A new sentence that is not said would be English amid Chinese."""
    seen = Unsaid()
    seen.visit(ast.parse((SOURCE / module).read_text()))
    assert seen.found == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_all_its_texts(name: str) -> None:
    text = (SOURCE / "view" / "templates" / name).read_text()
    bare = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|<code>.*?</code>|<[^>]*>", "", text, flags=re.DOTALL)
    assert re.findall("[A-Za-z]{2,}", bare.replace("tfdyno", "").replace("US$", "")) == WORDS[name]
    attributes = re.findall(r'(?:aria-label|placeholder|data-l)="([^"{]+)"', text)
    assert attributes == []


def test_a_sentence_that_is_not_said_is_found() -> None:
    seen = Unsaid()
    seen.visit(ast.parse('x = f"it costs {y} more"\nz = say("said {n}", n=1)\n"""A docstring."""'))
    assert seen.found == ["it costs {} more"]


def test_what_has_no_chinese_sentence_is_said_in_english() -> None:
    with speaking("zh"):
        assert say("nobody translated {this}", this="me") == "nobody translated me"
        assert say("{count} hours", count=3) == "3 小时"
    assert say("{count} hours", count=3) == "3 hours"
    assert spoken() == "en"


def test_a_command_that_fails_leaves_the_language_as_it_was() -> None:
    with pytest.raises(ValueError, match="broken"), speaking("zh"):
        raise ValueError("broken")
    assert spoken() == "en"


def test_a_context_is_never_read() -> None:
    marked = say_later(f"memory{CONTEXT}bottleneck")
    assert say(marked) == "memory"
    with speaking("zh"):
        assert (say(marked), say("memory")) == ("访存", "显存")
        assert say(f"nothing known{CONTEXT}at all") == "nothing known"


def test_english_reads_no_table() -> None:
    language._sentences.cache_clear()
    assert say("{count} hours", count=3) == "3 hours"
    assert language._sentences.cache_info().misses == 0


def test_chinese_counts_with_measure_words_and_has_no_plural() -> None:
    with speaking("zh"):
        assert amounts.plural(1, "card") == "1 块卡"
        assert amounts.plural(1200, "sample") == "1,200 个样本"
        assert amounts.plural(3, "noun without one") == "3 noun without ones"
        assert amounts.listed(["A", "B", "C"]) == "A、B、C"
        assert amounts.about_hours(6.7) == "6.7 小时"


def test_paragraphs_have_blanks_between_english_sentences_alone() -> None:
    assert joined(["One.", "", "Two."]) == "One. Two."
    with speaking("zh"):
        assert joined(["一。", "", "二。"]) == "一。二。"


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, "en"),
        ({"TFDYNO_LANG": "zh"}, "zh"),
        ({"TFDYNO_LANG": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW.UTF-8", "LC_ALL": "C"}, "en"),
    ],
)
def test_the_variable_wins_over_the_locale(
    variables: dict[str, str], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TFDYNO_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert language_of_reader() == found


def test_a_language_that_is_not_spoken_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDYNO_LANG", "fr")
    with pytest.raises(UsageError, match="TFDYNO_LANG is 'fr'"):
        language_of_reader()


def test_a_text_of_a_record_is_told_in_the_language_of_the_answer() -> None:
    sentences = ("{workload} has changed since the run was started",)
    text = "a b.py has changed since the run was started"
    assert language.retold(text, sentences) == text
    with speaking("zh"):
        assert language.retold(text, sentences) == "a b.py 自训练开始后有改动"
        assert language.retold(f"{text}, too", sentences) == f"{text}, too"


@pytest.mark.parametrize(
    "sentences",
    [
        (*train_notes.STAGES, *bench_told.STAGES, *diagnose_told.STAGES),
        (*diagnose_told.NOTES, *bench_told.NOTES, *train_notes.NOTES),
        bench_told.FAULTS, diagnose_told.FACTS, holders.HOLDERS, explanation.RANGE_REASONS,
        tune_notes.REASONS, tune_notes.NOTES, tune_notes.CLAUSES, tune_notes.UNCOMPARED,
    ],
)  # fmt: skip
def test_no_sentence_is_taken_for_one_that_is_asked_before_it(sentences: tuple[str, ...]) -> None:
    """A figure matches any text: what is more special has to stand before."""
    for at, one in enumerate(sentences):
        earlier = [first for first in sentences[:at] if first != one]
        with speaking("zh"):
            assert retold(one, earlier) == one
