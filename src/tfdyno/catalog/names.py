"""Which GPU a name means: slugs, marketing names, NVML names; never a guess from a prefix."""

from __future__ import annotations

import re

from tfdyno.catalog.tables import DATA, read_table
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError

LISTED = "'tfdyno gpus' lists all"
_SPLIT = re.compile(r"[^a-z0-9]+")
_FOREIGN = re.compile(
    r"(amd|apple|intel|habana)\b|radeon|instinct|gaudi|tpu|trainium|rx ?\d|mi ?\d|m[1-5]\b"
)
_NOISE = {"nvidia", "geforce", "tesla", "graphics", "gpu", "corporation"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Everything a GPU may be called."""

    slugs: dict[str, str]
    """Slug to display name."""
    exact: dict[str, str]
    """Normalised alias to slug."""


def read(slugs: dict[str, str]) -> Names:
    """Join ``aliases.csv`` with the slugs and names of the catalogue.

    Raises:
        ToolError: An alias stands twice or means a GPU that is not there.
    """
    exact: dict[str, str] = {}
    for row in read_table(
        DATA / "aliases.csv", ("alias", "gpu_slug", "kind", "source"), key=("alias",)
    ):
        key = normalise(row.text("alias"))
        if row.text("gpu_slug") not in slugs:
            raise row.fault(f"there is no GPU '{row.text('gpu_slug')}'")
        if exact.setdefault(key, row.text("gpu_slug")) != row.text("gpu_slug"):
            raise row.fault(f"'{row.text('alias')}' means two GPUs")
    for slug, name in slugs.items():
        exact.setdefault(normalise(name), slug)
    exact.update({normalise(slug): slug for slug in slugs})
    return Names(slugs=slugs, exact=exact)


def normalise(name: str) -> str:
    """Return letters and digits only, lower case, without the words that every card's name has."""
    words = [word for word in _SPLIT.split(name.lower()) if word and word not in _NOISE]
    return "".join(words)


def resolve(name: str, names: Names) -> str:
    """Return the slug of the one GPU that ``name`` means.

    Exact slugs and aliases come first. Otherwise all words of the query must occur in a card's
    name; one such card is the answer, several are listed.

    Raises:
        UsageError: No card, or several.
    """
    key = normalise(name)
    if not name[:1].isalnum() or not name.isascii():  # nothing of it may be dropped in silence
        raise UsageError(f"there is no GPU '{name}' in the catalogue", remedy=LISTED)
    if key in names.exact:
        return names.exact[key]
    words = _words(name)
    hits = [s for s, full in names.slugs.items() if words and words <= _words(f"{s} {full}")]
    if len(hits) == 1 and any(character.isdigit() for character in name):
        return hits[0]
    if len(hits) == 1:  # a word without a number: a family, of which more may come
        raise UsageError(f"'{name}' is no name of a GPU", remedy=f"did you mean {hits[0]}?")
    if hits:
        raise UsageError(
            f"'{name}' means {len(hits)} GPUs", remedy=f"choose one of {_listed(hits)}"
        )
    if _FOREIGN.match(name.strip().lower()):
        raise UsageError(f"'{name}' is not an NVIDIA GPU", why="tfdyno knows NVIDIA GPUs only")
    raise UsageError(f"there is no GPU '{name}' in the catalogue", remedy=_nearest(key, names))


def _words(text: str) -> frozenset[str]:
    return frozenset(
        word for part in _SPLIT.split(text.lower()) if part not in _NOISE for word in _pieces(part)
    )


def _pieces(part: str) -> list[str]:
    """Split a name into its parts: ``sxm4`` also counts as ``sxm``; ``80gb`` stays one word."""
    stem = re.fullmatch(r"(sxm|pcie)[0-9]", part)
    return [part, stem[1]] if stem else [part] if part else []


def _listed(slugs: list[str]) -> str:
    shown = ", ".join(slugs[:12])
    return f"{shown} and {len(slugs) - 12} more" if len(slugs) > 12 else shown


def _nearest(key: str, names: Names) -> str:
    import difflib  # only for a name that nobody has

    near = difflib.get_close_matches(key, names.exact, n=6, cutoff=0.6)
    slugs = list(dict.fromkeys(names.exact[match] for match in near))[:3]
    if slugs:
        return f"did you mean {' or '.join(slugs)}? ({LISTED})"
    return LISTED
