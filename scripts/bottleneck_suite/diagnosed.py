"""Runs ``tfdyno diagnose`` on one script of the suite and keeps of its answer what is scored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bottleneck_suite.cases import Case

LIMIT_S = 600.0
FIX_LIMIT_S = 3600.0
Row = dict[str, Any]


def command(case: Case, *, fix: bool) -> list[str]:
    """As a user would type it."""
    words = [sys.executable, "-m", "tfdyno", "diagnose", str(case.path), "--json", "--quiet"]
    words += ["--fix"] if fix else []
    return [*words, *(["--", *case.arguments] if case.arguments else [])]


def diagnosed(case: Case, *, fix: bool) -> Row:
    """The row of one script; a failure is a row as well."""
    base = {"script": case.script, "true_class": case.true_class, "fix": fix}
    began_s = time.monotonic()
    try:
        done = subprocess.run(
            command(case, fix=fix), capture_output=True, text=True, check=False,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
            timeout=FIX_LIMIT_S if fix else LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return {**base, "status": "error", "reason": f"not done after {error.timeout:.0f} s"}
    row = read(done.returncode, done.stdout, done.stderr)
    return {**base, **row, "seconds_s": round(time.monotonic() - began_s, 1)}


def read(code: int, stdout: str, stderr: str) -> Row:
    """What an answer says, or why there is none."""
    try:
        told = json.loads(stdout)
        primary = told["primary"]
        row: Row = {"status": "ok", "class": primary["class"], "cause": primary["cause"]}
    except (ValueError, KeyError, TypeError):
        last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
        return {"status": "error", "reason": f"exit {code}: {last.strip()}"[:300]}
    gain = (primary.get("expected_gain") or {}).get("best")
    others = [one["cause"] for one in told.get("findings", ()) if one["cause"] != row["cause"]]
    row |= {"expected_gain": gain, "others": others, "step_s": told.get("step_s")}
    return row | _proof(told, primary["cause"])


def _proof(told: Row, cause: str) -> Row:
    """Of the fixes that were kept: the gain that is proven, and whether the losses agree."""
    proofs = told.get("proofs")
    proven = [one["proven_gain"]["best"] for one in told.get("findings", ())
              if one.get("proven_gain")]  # fmt: skip
    if proofs is None:
        return {"proven_gain": max(proven)} if proven else {}
    kept = [one for one in proofs if one["kept"]]
    agree = all((one.get("agreement") or {}).get("agrees", False) for one in kept)
    found: Row = {"tried": len(proofs), "kept": [one["cause"] for one in kept]}
    if not kept:
        own = [one["reason"] for one in proofs if one["cause"] == cause]
        return {**found, "unproven": (own or [one["reason"] for one in proofs] or [""])[0]}
    product = 1.0
    for one in kept:  # each was measured on top of those before it
        product *= one["ratio"]
    return {**found, "proven_gain": round(product, 3), "agrees": agree}
