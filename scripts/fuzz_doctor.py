"""Give the doctor damaged logs and machine files: each is answered, none with a traceback."""

from __future__ import annotations

import argparse
import copy
import functools
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins, to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.doctor import doctor
from tfdyno.jobs.machine.knowledge import capability_of
from tfdyno.probe.base.host import Host
from tfdyno.probe.machine.machine import examine
from tfdyno.rules.told import machine_from_told
from tfdyno.view.doctor.document import doctor_document
from tfdyno.view.doctor.text import doctor_text, fix_plan, shared_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.language import Language
    from tfdyno.core.base.untyped import Value
    from tfdyno.jobs.doctor.doctor import Examined

DATA = Path(__file__).parents[1] / "tests" / "data"
CASES = ("doctor_cases.jsonl", "doctor_more_cases.jsonl")
SLOW_S = 5.0
"""A few kilobytes that take longer show an expression that backtracks without end."""
ENV_SHARE = 0.35
REPLAY_SHARE = 0.5
MOST_CHANGES = 6
PARTS = (
    "", "\0", "\r", "\r\n", "\n\n\n", "\t", "\ufeff", "\x1b[31m", "²", "٣", "½", "\ud800", "\u202e",
    "é", "错误", "{", "}", "{name}", "${HOME}", "%s", "||", "\\", '"', "'", "`", "|", "[1]", "-1",
    "nan", "inf", "1e999", "9" * 400, "9" * 5000, "0" * 50, ".", "..", ",", ":", "/", "a" * 9000,
    "C:\\Users\\x", "2025-01-01T00:00:00.000Z ", "[1,0]<stderr>:", "GiB", "MiB", "PiB",
)  # fmt: skip
ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-16", "utf-16-le", "latin-1", "gb18030", "utf-7")
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**70, 1.5, 1e308, "", " ", "²", "x" * 400, "9" * 499, [], {}, [None],
    "MIG-", "0,99", "GPU-", "12.x", "CUDA", "none", "{tensorflow}", "\ud800",
)  # fmt: skip


@dataclass(slots=True)
class Tally:
    """What became of the examples."""

    answered: int = 0
    refused: int = 0
    """Answered with one sentence, exit code 2."""
    causes: Counter[str] = field(default_factory=Counter)
    failed: dict[int, str] = field(default_factory=dict)
    """Number of an example to its traceback, or to how long it took."""
    slowest_s: float = 0.0


def example(seed: int, number: int, folder: Path) -> Examined:
    """Make one example and let the doctor answer it in every form that it has.

    Raises:
        UsageError: It is no log or no machine file; that is an answer too.
    """
    chance = random.Random(f"{seed}:{number}")
    language: Language = chance.choice(("en", "zh"))
    facts = None
    if chance.random() < ENV_SHARE:
        path = folder / "env.json"
        path.write_bytes(damaged_environment(chance))
        facts = doctor.told_facts(path)
    if facts is not None and chance.random() < REPLAY_SHARE:
        found = doctor.replay(facts, language=language)
    else:
        data = damaged_log(chance)
        size = chance.choice((1 << 20, 1 << 20, 700, 64))
        pieces = (data[at : at + size] for at in range(0, len(data), size))
        found = doctor.explain(pieces, facts=facts, language=language)
    _show(found, chance, language)
    return found


def damaged_log(chance: random.Random) -> bytes:
    """One or two real logs, joined, cut, doubled, and with strange text put in."""
    text = "\n".join(chance.choice(logs()) for _ in range(chance.choice((1, 1, 2, 3))))
    for _ in range(chance.randint(1, MOST_CHANGES)):
        text = chance.choice((_splice, _splice, _cut, _double, _numbers, _shuffle))(text, chance)
    data = text.encode(chance.choice(ENCODINGS), errors="replace")
    return _bytes(data, chance) if chance.random() < 0.3 else data


def damaged_environment(chance: random.Random) -> bytes:
    """The file of a machine with values of a wrong kind, or as text that is no JSON."""
    record = json.loads(json.dumps(chance.choice(environments())))
    for _ in range(chance.randint(0, 3)):
        _replace(record, chance)
    text = json.dumps(record)
    for _ in range(chance.choice((0, 0, 0, 1, 2))):
        text = chance.choice((_splice, _cut, _double, _numbers))(text, chance)
    data = text.encode(errors="replace")
    return _bytes(data, chance) if chance.random() < 0.05 else data


@functools.cache
def logs() -> tuple[str, ...]:
    """Real logs, those with reports of exhausted memory among them."""
    reports = sorted((DATA / "oom").iterdir())
    return (*(one["log"] for one in cases()), *(one.read_text("utf-8") for one in reports))


@functools.cache
def cases() -> tuple[dict[str, Any], ...]:
    """Logs whose cause is known, with the few words told of their machine."""
    texts = ((DATA / name).read_text("utf-8") for name in CASES)
    return tuple(json.loads(line) for text in texts for line in text.splitlines())


@functools.cache
def environments() -> tuple[dict[str, Any], ...]:
    """Words of real reports, and full records of machines."""
    told = [one["env"] for one in cases()]
    full = [to_builtins(machine_from_told(one, capability_of)) for one in told[::10]]
    full += [to_builtins(recorded(path)) for path in sorted((DATA / "machines").iterdir())]
    return (*told, *full * 4)


def recorded(path: Path) -> Value:
    """The facts that the probes find in a recorded folder tree."""
    record = json.loads(path.read_text())
    with tempfile.TemporaryDirectory() as folder:
        host = Host(root=Path(folder), **record["host"])
        for name, content in record["files"].items():
            file = host.path(name)
            file.parent.mkdir(parents=True, exist_ok=True)
            if content.startswith("-> "):
                file.symlink_to(content[3:])
            else:
                file.write_text(content)
        return examine(host)


def run(numbers: range, seed: int, tell: Callable[[int, Tally], None]) -> Tally:
    """Run the examples of these numbers; ``tell`` is called after each."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            began_s = time.process_time()
            try:
                found = example(seed, number, Path(folder))
            except UsageError:
                tally.refused += 1
            except Exception:  # what this is for
                tally.failed[number] = traceback.format_exc()
            else:
                tally.answered += 1
                first = found.diagnosis.findings[:1] or found.diagnosis.ignored[:1]
                tally.causes.update(one.cause for one in first)
            took_s = time.process_time() - began_s
            tally.slowest_s = max(tally.slowest_s, took_s)
            if took_s > SLOW_S:
                tally.failed[number] = f"took {took_s:.1f} s"
            tell(number, tally)
    return tally


def _show(found: Examined, chance: random.Random, language: Language) -> None:
    """Every form of an answer."""
    for width in (20, chance.choice((40, 80, 200))):
        doctor_text(
            found.diagnosis, exit_code=found.exit_code, from_log=chance.random() < 0.5,
            show_ignored=chance.random() < 0.5, language=language, width=width,
        )  # fmt: skip
    fix_plan(found.diagnosis, language=language)
    to_json(doctor_document(found.diagnosis, found.facts))
    doctor.redacted(shared_report(found.diagnosis, found.facts))


def _splice(text: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    end = min(len(text), at + chance.choice((0, 1, 5, 40)))
    return text[:at] + chance.choice(PARTS) * chance.choice((1, 1, 1, 7)) + text[end:]


def _cut(text: str, chance: random.Random) -> str:
    at, end = sorted(chance.randint(0, len(text)) for _ in range(2))
    return text[at:end] if chance.random() < 0.3 else text[:at] + text[end:]


def _double(text: str, chance: random.Random) -> str:
    at, end = sorted(chance.randint(0, len(text)) for _ in range(2))
    end = min(end, at + 2000)
    return text[:end] + text[at:end] * chance.choice((1, 2, 20)) + text[end:]


def _numbers(text: str, chance: random.Random) -> str:
    """Some numbers become huge, negative, or of another script."""
    new = chance.choice(("9" * 30, "9" * 400, "-1", "0", "²", "٣٤", "1e400", "1.2.3.4.5", ""))
    parts = [new if c.isdecimal() and chance.random() < 0.05 else c for c in text]
    return "".join(parts)


def _shuffle(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=chance.random() < 0.8)
    chance.shuffle(lines)
    return "".join(lines)


def _bytes(data: bytes, chance: random.Random) -> bytes:
    raw = bytearray(data)
    for _ in range(chance.randint(1, 20)):
        if raw:
            raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw)


def _replace(record: dict[str, Any], chance: random.Random) -> None:
    """Put something strange at a random place of a tree of objects and lists."""
    place: Any = record
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and chance.random() < 0.8:
            place = place[key]
            continue
        place[key] = copy.deepcopy(chance.choice(STRANGE))
        return


def main() -> int:
    """Run the examples and print what became of them; exit code 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="to see one again")
    options = parser.parse_args()
    last = options.first + options.count

    def tell(number: int, tally: Tally) -> None:
        if number in tally.failed:
            print(f"example {number}: {tally.failed[number]}", file=sys.stderr)
        if (number + 1) % 1000 == 0:
            print(f"{number + 1:,} of {last:,}, {len(tally.failed)} failed", file=sys.stderr)

    tally = run(range(options.first, last), options.seed, tell)
    kinds = {text.splitlines()[-1]: (number, text) for number, text in tally.failed.items()}
    for number, text in list(kinds.values())[:10]:
        print(f"--seed {options.seed} --first {number} --count 1 shows again:\n{text}")
    print(f"{options.count:,} examples: {tally.answered:,} answered, {tally.refused:,} refused in "
          f"a sentence, {len(tally.failed):,} failed")  # fmt: skip
    print(f"{len(tally.causes)} causes named first; the slowest took {tally.slowest_s:.2f} s")
    return int(bool(tally.failed))


if __name__ == "__main__":
    sys.exit(main())
