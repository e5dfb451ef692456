"""``scripts/gpu_day``: tries every command on the card of this machine, and judges what comes."""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_day import host, telemetry
from gpu_day.day import Day
from gpu_day.page import page
from gpu_day.steps import Step, planned
from gpu_day.verdict import ORDER, Row, Verdict, failed, not_run, raw_of, row_of, skipped
from gpu_truth import interrupt
from gpu_truth.card import Card, find_card
from gpu_truth.main import positive

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FORMAT = "tfdyno gpu day 1"
JSON_FILE, PAGE_FILE, TELEMETRY_FILE = "day.json", "day.html", "telemetry.csv"
LOCK_FILE = ".lock"
INTERRUPTED = 130
CPU_TIMES = 4.0
"""As much time has a step on CPUs, where a compile and a run take that much longer."""
GROWTH = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}
"""Of steps side by side: by itself TensorFlow takes the whole memory of a card."""


class WrongUseError(Exception):
    """What was asked cannot be done; one sentence."""


@dataclass(slots=True, kw_only=True)
class Book:
    """What is known of the day, written after every step."""

    out: Path
    about: dict[str, Any]
    rows: dict[str, Row]
    note: str = ""
    """What the reader has to know of the whole."""

    def write(self) -> None:
        """Write JSON and page, each whole or not at all."""
        document = {"format": FORMAT, "about": self.about, "note": self.note,
                    "steps": [raw_of(row) for row in self.rows.values()]}  # fmt: skip
        points = telemetry.read(self.out / TELEMETRY_FILE)
        _put(self.out / JSON_FILE, json.dumps(document, indent=1, ensure_ascii=False))
        _put(self.out / PAGE_FILE, page(document, points))


def main(words: Sequence[str] | None = None) -> int:
    """Try the steps; 1 where one failed, 2 for wrong use, 130 for Ctrl-C."""
    asked = _parser().parse_args(words)
    try:
        return _run(asked)
    except WrongUseError as error:
        sys.stderr.write(f"gpu_day: {error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpu_day",
        description="Tries tfdyno on the NVIDIA card of this machine, offline, for ten minutes: "
        "each step runs real commands and is judged by its numbers. Writes a page, JSON, logs and "
        "telemetry. Nothing that fails or is not installed stops it.",
    )
    add = parser.add_argument
    add("--seconds", type=positive, default=600.0, metavar="S", help="for all of it (600)")
    add("--only", metavar="STEP,...", default="", help="these steps; diagnose means all of its own")
    add("--out", type=Path, default=Path("gpu-day"), metavar="FOLDER", help="results (gpu-day)")
    add("--resume", action="store_true", help="go on in the folder: what is not over yet")
    add("--again", action="store_true", help="with --resume: what failed as well")
    add("--list", action="store_true", help="show the steps in their order and run nothing")
    add("--card", metavar="INDEX", help="index or UUID of the card (the first visible)")
    add("--cpu", action="store_true", help="try the tool itself without a card; figures say CPU")
    return parser


def _run(asked: argparse.Namespace) -> int:
    steps = chosen(planned(), asked.only)
    if asked.list:
        for step in steps:
            sys.stdout.write(f"{step.name:24} {step.title}\n")
        return 0
    card = None if asked.cpu else _card(asked.card)
    out: Path = asked.out.absolute()
    book = _book(out, card, asked)
    if lacking := host.missing_dependencies():
        book.note = f"Not installed for this Python: {', '.join(lacking)}, which tfdyno needs."
        _tell(f"{book.note} Steps that run it are skipped: pip install {' '.join(lacking)}")
    interrupt.listen()
    began_s = time.monotonic()
    day = Day(
        out=out,
        environment=host.environment(out, cpu=card is None, uuid=card.uuid if card else ""),
        card=card,
        end_s=began_s + asked.seconds,
    )
    uuid = card.uuid if card else None
    with telemetry.watched(out / TELEMETRY_FILE, began_s=began_s, uuid=uuid) as unwatched:
        book.note = " ".join(filter(None, (book.note, unwatched)))
        over = _over(book, resumes=asked.resume, again=asked.again)
        todo = [step for step in steps if step.name not in over]
        stopped = _all(todo, day, book, lacking, began_s)
    book.write()
    return _answer(book, out, stopped=stopped)


def chosen(steps: Sequence[Step], only: str) -> tuple[Step, ...]:
    """The steps that are named; ``diagnose`` names all of its own.

    Raises:
        WrongUseError: A name is none of them.
    """
    names = [one.strip() for one in only.split(",") if one.strip()]
    known = {step.name for step in steps} | {step.name.partition(":")[0] for step in steps}
    if unknown := [name for name in names if name not in known]:
        raise WrongUseError(f"there is no step {unknown[0]}: {', '.join(sorted(known))}")
    return tuple(
        step for step in steps
        if not names or step.name in names or step.name.partition(":")[0] in names
    )  # fmt: skip


def _card(asked: str | None) -> Card:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    card = find_card(asked or visible or "0")
    if card is None:
        raise WrongUseError(
            f"no NVIDIA card {asked or visible or '0'} on this machine: the driver tells of none "
            "(tfdyno doctor says why; --cpu tries the tool itself without one)"
        )
    return card


def _book(out: Path, card: Card | None, asked: argparse.Namespace) -> Book:
    """A new day, or the one of the folder.

    Raises:
        WrongUseError: The folder holds another day, or none to go on with, or cannot be written.
    """
    about = host.about(card, seconds_s=asked.seconds)
    file = out / JSON_FILE
    if file.exists() and not asked.resume:
        raise WrongUseError(
            f"{out} holds a day already: go on with --resume, or name another --out"
        )
    if asked.resume and not file.exists():
        raise WrongUseError(f"there is no day in {out} to go on with: leave --resume out")
    rows: dict[str, Row] = {}
    if asked.resume:
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
            rows = {raw["name"]: row_of(raw) for raw in told["steps"]}
            first = told["about"]
            before = first["card"]
            about["date"] = first.get("date", about["date"])
            about["seconds_s"] += first.get("seconds_s", 0.0)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WrongUseError(f"{file} cannot be read: {error}") from None
        if before != about["card"]:
            raise WrongUseError(f"the day in {out} is of {before}, and this is {about['card']}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        _hold(out)
        book = Book(out=out, about=about, rows=rows)
        book.write()
    except OSError as error:
        raise WrongUseError(f"{out} cannot be written: {error.strerror}") from None
    return book


def _hold(out: Path) -> None:
    """Keep other sittings out of the folder until this process ends; raises ``WrongUseError``."""
    lock = os.open(out / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise WrongUseError(f"another gpu_day is at work in {out}") from None


def _all(
    steps: Sequence[Step],
    day: Day,
    book: Book,
    lacking: Sequence[str],
    began_s: float,
) -> bool:
    """Try the steps, whatever comes of them; whether Ctrl-C ended it."""
    order = {step.name: place for place, step in enumerate(planned())}
    lanes = host.lanes(day.card)
    left = list(steps)
    while left:
        group = _group(left) if lanes > 1 else left[:1]
        _tell("\n".join(f"{step.name}: {step.title}" for step in group))
        try:
            for row in _rows(group, day, lacking, began_s, lanes=lanes):
                _put_row(book, order, row)
                _tell(_said(row, named=len(group) > 1))
                book.write()
        except KeyboardInterrupt:
            for step in left:
                _leave(book, order, step, "interrupted" if step in group else "interrupted before")
            return True
        left = left[len(group) :]
    return False


def _group(left: Sequence[Step]) -> list[Step]:
    """The steps that are next, side by side."""
    first = left[0]
    if not first.beside:
        return [first]
    return list(itertools.takewhile(lambda step: step.beside == first.beside, left))


def _rows(
    group: Sequence[Step], day: Day, lacking: Sequence[str], began_s: float, *, lanes: int
) -> Iterator[Row]:
    """What comes of steps that run side by side, as it comes; after Ctrl-C their commands end."""
    with ThreadPoolExecutor(min(lanes, len(group))) as pool:
        try:
            rows = [pool.submit(_row_of, step, day, lacking, began_s) for step in group]
            for future in as_completed(rows):
                yield future.result()
        except (KeyboardInterrupt, GeneratorExit):
            day.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _said(row: Row, *, named: bool) -> str:
    who = f"{row.name}: " if named else ""
    return f"  {who}{row.status}{f': {row.why}' if row.why else ''} ({row.seconds_s:.0f} s)"


def _row_of(step: Step, day: Day, lacking: Sequence[str], began_s: float) -> Row:
    """Try one step."""
    begun_s = time.monotonic()
    limit_s = step.limit_s * (CPU_TIMES if day.cpu else 1.0)
    own = day.begin(step.name, limit_s, **(GROWTH if step.beside and not day.cpu else {}))
    return _row(step, own, _tried(step, own, lacking), begun_s, began_s)


def _over(book: Book, *, resumes: bool, again: bool) -> set[str]:
    """Steps of an earlier sitting that need not be tried any more."""
    rows = book.rows.values() if resumes else ()
    return {row.name for row in rows if row.is_over and not (again and row.status == "failed")}


def _tried(step: Step, day: Day, lacking: Sequence[str]) -> Verdict:
    """What comes of a step; its own mistakes are a failure of that step alone."""
    if absent := host.missing(step.needs):
        return skipped(f"not installed for this Python: {', '.join(absent)}")
    if step.needs_tfdyno and lacking:
        return skipped(f"tfdyno needs {', '.join(lacking)}, not installed for this Python")
    if day.left_s < step.least_s:
        return not_run("time was up")
    try:
        return step.try_it(day)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        return failed(f"gpu_day could not read what it told: {type(error).__name__}: {error}")


def _row(step: Step, day: Day, verdict: Verdict, begun_s: float, began_s: float) -> Row:
    logs = sorted(day.logs.glob(f"{step.name.replace(':', '-')}-*")) if day.done else []
    return Row(
        name=step.name,
        title=step.title,
        status=verdict.status,
        why=verdict.why,
        checks=verdict.checks,
        seconds_s=round(time.monotonic() - begun_s, 1),
        began_s=round(begun_s - began_s, 1),
        commands=tuple(" ".join(done.words) for done in day.done),
        logs=tuple(str(path.relative_to(day.out)) for path in logs),
    )


def _leave(book: Book, order: dict[str, int], step: Step, why: str) -> None:
    """Say of a step that was not begun why it was not, unless it is over from before."""
    if step.name not in book.rows:
        row = Row(name=step.name, title=step.title, status="not run", why=why)
        _put_row(book, order, row)


def _put_row(book: Book, order: dict[str, int], row: Row) -> None:
    rows = {**book.rows, row.name: row}
    book.rows = dict(sorted(rows.items(), key=lambda one: order.get(one[0], len(order))))


def _answer(book: Book, out: Path, *, stopped: bool) -> int:
    counts = {status: sum(row.status == status for row in book.rows.values()) for status in ORDER}
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    where = "" if not book.about["is_cpu"] else " on the CPU, which says nothing of a card"
    sys.stdout.write(f"{told}{where}\n{out / PAGE_FILE}\n")
    if counts["not run"]:
        sys.stdout.write("the same command with --resume goes on\n")
    if stopped:
        return INTERRUPTED
    return 1 if counts["failed"] else 0


def _put(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
