"""cli/choose/advise_options: what is ruled out, as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.typed import typed

from tfdyno.cli.choose.advise_options import Options, conditions_of
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.market import Conditions


def test_nothing_is_ruled_out_where_nothing_is_typed() -> None:
    assert conditions_of(typed(Options, "keras:ResNet50")) == Conditions()


def test_what_is_typed_rules_out_the_rest() -> None:
    options = typed(
        Options, "keras:ResNet50", "--gpu", "l4,t4", "--provider", "AWS, ,gcp", "--count", "1,2",
        "--no-spot", "--owned", "rtx-4090", "--offers", "own.csv", "--scenario", "serve",
        "--max-nodes", "3",
    )  # fmt: skip
    found = conditions_of(options)
    assert [gpu.slug for gpu in (*found.gpus, *found.owned)] == ["l4", "t4", "rtx-4090"]
    assert (found.providers, found.counts) == (("aws", "gcp"), (1, 2))
    assert (found.spot, found.offers_file) == (False, Path("own.csv"))
    assert (found.scenario, found.max_nodes) == ("serve", 3)


def test_a_card_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UsageError, match="rtx-4091"):
        conditions_of(typed(Options, "keras:ResNet50", "--owned", "rtx-4091"))
