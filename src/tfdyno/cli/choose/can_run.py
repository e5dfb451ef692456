"""``tfdyno doctor --can-run`` and ``--matrix``: which TensorFlow runs on which GPU."""

from __future__ import annotations

from typing import Any

import click

from tfdyno.catalog.gpus import parse_list
from tfdyno.core.choose.software import REFUSING


def answer_support(given: dict[str, Any]) -> int:
    """Print the answer; returns 1 where a pair that was asked for does not run."""
    cards = parse_list(given["gpu"]) if given["gpu"] else ()
    return _matrix(cards, given) if given["matrix"] else _pairs(cards, given)


def _pairs(cards: tuple[Any, ...], given: dict[str, Any]) -> int:
    from tfdyno.jobs.lookup.can_run import can_run
    from tfdyno.jobs.machine.knowledge import aged
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.lookup.can_run_text import can_run_text

    found = can_run(cards, _releases(given))
    if given["as_json"]:
        notes = dict.fromkeys(filter(None, (aged(support.tensorflow) for _, support in found)))
        _print_json({"support": [support for _, support in found], "notes": list(notes)})
    else:
        width, colour = terminal_width(), colour_wanted()
        texts = (can_run_text(gpu, one, aged=aged(one.tensorflow), width=width, colour=colour)
                 for gpu, one in found)  # fmt: skip
        click.echo("\n\n".join(texts))
    return int(any(one.outcome in REFUSING for _, one in found))


def _matrix(cards: tuple[Any, ...], given: dict[str, Any]) -> int:
    from tfdyno.jobs.lookup.can_run import matrix
    from tfdyno.jobs.machine.knowledge import aged
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.lookup.can_run_text import matrix_text

    found = matrix(cards, _releases(given))
    if given["as_json"]:
        _print_json({"releases": found.releases, "rows": found.rows, "without": found.without})
        return 0
    rows = [(row.compute_capability, row.names, row.verdicts) for row in found.rows]
    shown = matrix_text(
        found.releases, rows, without=found.without, merge=not given["tf"],
        aged=aged(found.releases[-1]),
        width=terminal_width(), colour=colour_wanted(),
    )  # fmt: skip
    click.echo(shown)
    return 0


def _releases(given: dict[str, Any]) -> tuple[str, ...]:
    return tuple(one.strip() for one in given["tf"].split(",")) if given["tf"] else ()


def _print_json(document: dict[str, Any]) -> None:
    from tfdyno.core.base.codec import to_json

    click.echo(to_json(document).decode())
