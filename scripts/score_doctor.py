"""Score the doctor on real logs whose true cause is known."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.jobs.doctor.doctor import explain
from tfdyno.jobs.machine.knowledge import capability_of
from tfdyno.rules.told import machine_from_told

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Diagnosis

CASES = Path(__file__).parents[1] / "tests" / "data" / "doctor_cases.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A case whose first finding is not an accepted cause."""

    case: str
    expected: str
    got: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How the doctor did."""

    cases: int
    top1: int
    top3: int
    harmless: int
    false_alarms: tuple[str, ...]
    misses: tuple[Miss, ...]

    @property
    def top1_ratio(self) -> float:
        """Share of cases whose first finding is accepted."""
        return self.top1 / self.cases


def read_cases(path: Path = CASES) -> list[dict[str, Any]]:
    """The cases of a file, one JSON object per line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def answer(case: dict[str, Any]) -> Diagnosis:
    """What the doctor says of a case's log and of what is told of its machine."""
    facts = machine_from_told(case["env"], capability_of)
    return explain([case["log"].encode()], facts=facts).diagnosis


def score(cases: list[dict[str, Any]]) -> Score:
    """Judge every case: the harmless ones count as findings only where there is no other."""
    top1 = top3 = 0
    alarms, misses = [], []
    for case in cases:
        said = answer(case)
        got = tuple(one.cause for one in said.findings + said.ignored)
        accepted = {case["expected_cause"], *case["also_accept"]}
        top3 += bool(accepted & set(got[:3]))
        if got[:1] and got[0] in accepted:
            top1 += 1
        else:
            misses.append(Miss(case=case["id"], expected=case["expected_cause"], got=got[:3]))
        if case["harmless"] and (said.findings or said.unexplained):
            alarms.append(case["id"])
    return Score(
        cases=len(cases),
        top1=top1,
        top3=top3,
        harmless=sum(case["harmless"] for case in cases),
        false_alarms=tuple(alarms),
        misses=tuple(misses),
    )


def main() -> int:
    """Print the score; exit code 1 below 95 % or with a false alarm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, default=CASES, metavar="FILE")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = score(read_cases(options.cases))
    if options.json:
        misses = [{"case": m.case, "expected": m.expected, "got": m.got} for m in result.misses]
        counts = {name: getattr(result, name) for name in ("cases", "top1", "top3", "harmless")}
        print(json.dumps(counts | {"false_alarms": result.false_alarms, "misses": misses}))
    else:
        for miss in result.misses:
            print(f"  {miss.case:28} {miss.expected:28} got {', '.join(miss.got) or 'nothing'}")
        print(f"top 1   {result.top1} of {result.cases} ({result.top1_ratio:.1%})")
        print(f"top 3   {result.top3} of {result.cases} ({result.top3 / result.cases:.1%})")
        print(f"false alarms   {len(result.false_alarms)} of {result.harmless} harmless cases")
        for case in result.false_alarms:
            print(f"  {case}")
    return int(result.top1_ratio < 0.95 or bool(result.false_alarms))


if __name__ == "__main__":
    sys.exit(main())
