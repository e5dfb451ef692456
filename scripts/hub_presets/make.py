"""Build the backbone of every claimed preset, count its parameters, write what is proven."""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from typing import TYPE_CHECKING

from hub_presets.claims import Claim, read_claims
from hub_presets.table import written
from tfdyno.catalog.presets import with_none
from tfdyno.catalog.tables import DATA
from tfdyno.core.base.codec import read_toml, write_atomic
from tfdyno.core.base.errors import TfdynoError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hub_presets.table import Rows
    from tfdyno.core.base.untyped import Value

TARGET = DATA / "presets.toml"
UNKNOWN = "its configuration has not been collected"
ABSENT = "keras-hub tells no parameter count to check it against"
ROUNDED = "keras-hub tells a rounded parameter count only, which proves nothing"
DIFFERS = "the backbone, built from the published configuration, has another parameter count"
Told = dict[str, dict[str, int | None]]
"""Family to preset to the parameter count that keras-hub tells, or None."""


def main() -> int:
    """Return 1 where ``--check`` finds the file out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    parser.add_argument(
        "families", nargs="*", metavar="FAMILY", help="only these; the rows of others stay"
    )
    given = parser.parse_args()
    try:
        return _answered(given.families, check=given.check)
    except TfdynoError as error:
        print(error, file=sys.stderr)
        return 2


def _answered(families: list[str], *, check: bool) -> int:
    if importlib.util.find_spec("keras_hub") is None:
        remedy = "pip install --target FOLDER keras-hub, then PYTHONPATH=FOLDER scripts/presets"
        raise UsageError("keras-hub is not installed", remedy=remedy)
    import keras_hub

    told = told_by_keras_hub()
    claims = [one for one in read_claims() if not families or one.family in families]
    rows, failed = proven_of(claims, told)
    if families:
        before = read_toml(TARGET)
        rows = {**before["family"], **rows}
        failed = {**_flat(before["left_out"]), **failed}
    text = written(rows, left_out(rows, failed, told), keras_hub.__version__)
    sizes = [size for family in rows.values() for size in family]
    print(f"{sum(len(size['presets']) for size in sizes)} presets of {len(sizes)} configurations")
    if TARGET.exists() and text == TARGET.read_text(encoding="utf-8"):
        return 0
    if not check:
        write_atomic(TARGET, text.encode())
        return 0
    print(f"{TARGET.name} is out of date: scripts/presets writes it anew")
    return 1


def told_by_keras_hub() -> Told:
    """Read the parameter count of every preset that a backbone or a task of keras-hub has.

    A class has those of its subclasses too, so that a preset may be told by two families.
    """
    import keras_hub

    told: Told = {}
    models: dict[str, Value] = vars(keras_hub.models)
    for model in models.values():
        where = getattr(model, "__module__", "").split(".")
        folder, family, _ = ["", "", *where][-3:]
        if folder != "models":
            continue
        for preset, about in getattr(model, "presets", {}).items():
            told.setdefault(family, {})[preset] = about.get("metadata", {}).get("params")
    return told


def counts_of(claim: Claim) -> tuple[int, int]:
    """Return the parameters of the backbone, and the count that keras-hub should tell.

    What is built has variables without values, so that its size does not matter.
    """
    import keras
    import keras_hub

    from tfdyno.runtime.workload.weightless import weightless

    keras.utils.clear_session()
    with weightless():
        built = getattr(keras_hub.models, claim.backbone).from_config(with_none(claim.config))
        counted = built
        if claim.task:
            task = getattr(keras_hub.models, claim.task)
            counted = task(backbone=built, **with_none(claim.task_config))
    weights = counted.trainable_weights if claim.trainable_only else counted.weights
    return int(built.count_params()), sum(math.prod(one.shape) for one in weights)


def proven_of(claims: Iterable[Claim], told: Told) -> tuple[Rows, dict[str, str]]:
    """Return what can be shown to be right, and why of other presets it cannot.

    Raises:
        UsageError: keras-hub has no preset of a name that is claimed.
    """
    rows: Rows = {}
    failed: dict[str, str] = {}
    for claim in claims:
        known = told.get(claim.family, {})
        strange = [name for name in claim.presets if name not in known]
        if strange:
            raise UsageError(f"keras-hub has no preset {strange[0]!r} in {claim.family}")
        try:
            count, expected = counts_of(claim)
        except Exception as error:
            error.add_note(f"while building {claim.backbone} of {', '.join(claim.presets)}")
            raise
        right = [name for name in claim.presets if known[name] == expected]
        for name in claim.presets:
            if name not in right:
                failed[name] = _why(known[name])
                print(f"{name}: {expected:,} parameters, keras-hub tells {known[name]}", flush=True)
        if right:
            rows.setdefault(claim.family, []).append(_row(claim, right, count))
    return rows, failed


def _row(claim: Claim, presets: list[str], parameter_count: int) -> dict[str, Value]:
    counted = claim.counted
    return {
        "presets": presets,
        "backbone": claim.backbone,
        "parameter_count": parameter_count,
        "sequence_length": claim.sequence_length,
        "source": f"{claim.source}; keras-hub counts {counted}" if counted else claim.source,
        "config": claim.config,
    }


def _why(told: int | None) -> str:
    if not told:
        return ABSENT
    return ROUNDED if told % 10**5 == 0 else DIFFERS


def left_out(rows: Rows, failed: dict[str, str], told: Told) -> dict[str, list[str]]:
    """Return each reason why presets of keras-hub are left out, and their names, sorted."""
    found = {name for family in rows.values() for size in family for name in size["presets"]}
    left: dict[str, list[str]] = {}
    for name in sorted({name for known in told.values() for name in known} - found):
        left.setdefault(failed.get(name, UNKNOWN), []).append(name)
    return dict(sorted(left.items()))


def _flat(left: dict[str, list[str]]) -> dict[str, str]:
    return {name: reason for reason, names in left.items() for name in names}


if __name__ == "__main__":
    sys.exit(main())
