"""``tfdyno doctor --can-run`` and ``--matrix``: which TensorFlow runs on which GPU."""

from __future__ import annotations

from functools import partial

from tfdyno.catalog.gpus import parse_list
from tfdyno.cli.answer import Answer
from tfdyno.core.choose.software import REFUSING


def support(gpu: str | None, tensorflow: str | None, *, as_matrix: bool) -> Answer:
    """Answer for cards and releases; the exit code is 1 where a pair does not run.

    Args:
        gpu: Cards, with commas.
        tensorflow: Releases, with commas.
        as_matrix: All cards, or those, by all releases, or those.
    """
    from tfdyno.jobs.lookup.can_run import can_run, matrix
    from tfdyno.jobs.machine.knowledge import aged
    from tfdyno.view.lookup.can_run_text import can_run_text, matrix_text

    cards = parse_list(gpu) if gpu else ()
    releases = tuple(one.strip() for one in tensorflow.split(",")) if tensorflow else ()
    if as_matrix:
        table = matrix(cards, releases)
        rows = [(row.compute_capability, row.names, row.verdicts) for row in table.rows]
        return Answer(
            document=lambda: {"releases": table.releases, "rows": table.rows,
                              "without": table.without},
            indent=0,
            text=partial(matrix_text, table.releases, rows, without=table.without,
                         merge=not tensorflow, aged=aged(table.releases[-1])),
        )  # fmt: skip
    found = can_run(cards, releases)
    notes = dict.fromkeys(filter(None, (aged(one.tensorflow) for _, one in found)))
    return Answer(
        document=lambda: {"support": [one for _, one in found], "notes": list(notes)},
        indent=0,
        text=lambda **form: "\n\n".join(
            can_run_text(card, one, aged=aged(one.tensorflow), **form) for card, one in found
        ),
        exit_code=int(any(one.outcome in REFUSING for _, one in found)),
    )
