"""Build the backbone of every claimed preset, count its parameters, write what is proven."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import textwrap
from typing import TYPE_CHECKING

from hub_presets.claims import Claim, read_claims
from tfdyno.catalog.presets import NONE
from tfdyno.catalog.tables import DATA
from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.base.toml_text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfdyno.core.base.untyped import Value

TARGET = DATA / "presets.toml"
UNKNOWN = "its configuration has not been collected"
ABSENT = "keras-hub tells no parameter count to check it against"
ROUNDED = "keras-hub tells a rounded parameter count only, which proves nothing"
DIFFERS = "the backbone, built from the published configuration, has another parameter count"
_HEAD = """\
# Presets of keras-hub and what their backbones are built with: scripts/presets writes this file.
# Each configuration is proven: keras-hub {version} built it, and it has parameter_count parameters,
# as keras-hub tells in models/FAMILY/FAMILY_presets.py. source: where the configuration is from.
# "none" stands for Python's None.
"""
Told = dict[str, dict[str, int | None]]
"""Family to preset to the parameter count that keras-hub tells, or None."""


def main() -> int:
    """Return 1 where ``--check`` finds the file out of date or a claim of a family fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="only these; writes nothing")
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
    proven, failed = proven_of(claims, told)
    if families:
        return 1 if failed else 0
    text = written(proven, reasons(proven, failed, told), keras_hub.__version__)
    current = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    print(f"{sum(len(one.presets) for one, _ in proven)} presets of {len(proven)} configurations")
    if text == current:
        return 0
    if not check:
        write_atomic(TARGET, text.encode())
        return 0
    print(f"{TARGET.name} is out of date: scripts/presets writes it anew")
    return 1


def told_by_keras_hub() -> Told:
    """Read the parameter count of every preset that a backbone of keras-hub has."""
    import keras_hub

    told: Told = {}
    models: dict[str, Value] = vars(keras_hub.models)
    for name, backbone in models.items():
        if name.endswith("Backbone"):
            family = backbone.__module__.split(".")[-2]
            for preset, about in backbone.presets.items():
                count = about.get("metadata", {}).get("params")
                told.setdefault(family, {})[preset] = count
    return told


def parameter_count_of(backbone: str, config: Mapping[str, object]) -> int:
    """Build a backbone whose variables have no values, and count its parameters."""
    import keras
    import keras_hub

    from tfdyno.runtime.workload.weightless import weightless

    keras.utils.clear_session()
    with weightless():
        built = getattr(keras_hub.models, backbone).from_config(with_none(config))
    return int(built.count_params())


def with_none(value: Value) -> Value:
    """Return a copy with None where the tables say "none"."""
    if isinstance(value, dict):
        return {key: with_none(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_none(one) for one in value]
    return None if value == NONE else value


def proven_of(
    claims: Iterable[Claim], told: Told
) -> tuple[list[tuple[Claim, int]], dict[str, str]]:
    """Return what can be shown to be right, with its count, and why of other presets it cannot.

    Raises:
        UsageError: keras-hub has no preset of a name that is claimed.
    """
    proven: list[tuple[Claim, int]] = []
    failed: dict[str, str] = {}
    for claim in claims:
        known = told.get(claim.family, {})
        strange = [name for name in claim.presets if name not in known]
        if strange:
            raise UsageError(f"keras-hub has no preset {strange[0]!r} in {claim.family}")
        count = parameter_count_of(claim.backbone, claim.config)
        right = tuple(name for name in claim.presets if known[name] == count)
        for name in claim.presets:
            if name not in right:
                failed[name] = _why(known[name])
                print(f"{name}: {count:,} parameters, keras-hub tells {known[name]}", flush=True)
        if right:
            proven.append((_narrowed(claim, right), count))
    return proven, failed


def _why(told: int | None) -> str:
    if not told:
        return ABSENT
    return ROUNDED if told % 10**5 == 0 else DIFFERS


def _narrowed(claim: Claim, presets: tuple[str, ...]) -> Claim:
    return Claim(
        family=claim.family,
        presets=presets,
        backbone=claim.backbone,
        config=claim.config,
        sequence_length=claim.sequence_length,
        source=claim.source,
    )


def reasons(
    proven: Iterable[tuple[Claim, int]], failed: Mapping[str, str], told: Told
) -> dict[str, list[str]]:
    """Return each reason why presets of keras-hub are left out, and their names, sorted."""
    found = {name for claim, _ in proven for name in claim.presets}
    rest = sorted({name for known in told.values() for name in known} - found)
    left: dict[str, list[str]] = {}
    for name in rest:
        left.setdefault(failed.get(name, UNKNOWN), []).append(name)
    return dict(sorted(left.items()))


def written(
    proven: Iterable[tuple[Claim, int]], left: Mapping[str, list[str]], version: str
) -> str:
    """Write the table of the catalogue."""
    lines = [_HEAD.format(version=version), "[left_out]"]
    for reason, names in left.items():
        listed = textwrap.fill(", ".join(map(quoted, names)), 100, break_on_hyphens=False)
        lines += [f"{quoted(reason)} = [", textwrap.indent(listed, "    "), "]"]
    for claim, count in proven:
        lines += [
            f"\n[[family.{claim.family}]]",
            f"presets = {_toml(list(claim.presets))}",
            f"backbone = {quoted(claim.backbone)}",
            f"parameter_count = {count:_}",
            f"sequence_length = {claim.sequence_length}",
            f"source = {quoted(claim.source)}",
            f"config = {_toml(claim.config)}",
        ]
    return "\n".join(lines) + "\n"


def _toml(value: Value) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{key} = {_toml(value[key])}" for key in sorted(value))
        return f"{{ {inside} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


if __name__ == "__main__":
    sys.exit(main())
