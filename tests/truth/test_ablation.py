from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.errors import UsageError
from tfdyno_truth.ablation import NOTHING, Ablated, chosen, read_results, store, terms, without

if TYPE_CHECKING:
    from pathlib import Path


def ablated(name: str, mean: float) -> Ablated:
    return Ablated(
        name=name, title=f"title of {name}", constants="abc", rows=3, gpu_tensorflow_mean=mean,
        gpu_all_mean=mean, gpu_all_p90=mean, model_tensorflow_mean=mean, model_all_mean=mean,
        model_all_p90=mean,
    )  # fmt: skip


def test_every_group_takes_something_out_that_a_fit_decides() -> None:
    known = terms(time_model())
    groups = [term for name, term in known.items() if term.title != name]
    assert 5 < len(groups) <= 16
    for term in groups:
        parameters = [time_model().parameters[name] for name, _ in term.held]
        assert any(parameter.fitted for parameter in parameters), term.name


def test_every_fitted_constant_but_the_rates_of_whole_units_is_in_a_group() -> None:
    taken = {name for term in terms(time_model()).values() if term.title != term.name
             for name, _ in term.held}  # fmt: skip
    fitted = {name for name, one in time_model().parameters.items() if one.fitted}
    assert fitted - taken == {"u_cuda", "u_tf32", "u_half"}


def test_without_names_the_groups_are_meant_and_nothing_comes_first() -> None:
    known = terms(time_model())
    found = chosen(known, ())
    assert found[0].name == NOTHING
    assert all(term.title != term.name for term in found[1:])


def test_an_unknown_term_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no term 'e_lop'; did you mean e_loop"):
        chosen(terms(time_model()), ["e_lop"])


def test_a_group_with_an_unknown_constant_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ablation.toml"
    path.write_text('[x]\ntitle = "x"\nneutral = ["e_magic"]\n')
    with pytest.raises(UsageError, match="group 'x' names e_magic"):
        terms(time_model(), path)
    path.write_text('[x]\ntitle = "x"\n')
    with pytest.raises(UsageError, match="names no constant at all"):
        terms(time_model(), path)


def test_what_is_held_is_not_fitted_any_more_and_the_rest_is_as_it_was() -> None:
    known = terms(time_model())
    term = next(iter(term for term in known.values() if term.held))
    held = without(time_model().parameters, term)
    for name, value in term.held:
        assert (held[name].fitted, held[name].value) == (False, value)
    untouched = set(held) - {name for name, _ in term.held}
    assert all(held[name] == time_model().parameters[name] for name in untouched)


def test_results_take_the_place_of_older_ones_with_their_name(tmp_path: Path) -> None:
    path = tmp_path / "ablation.csv"
    assert read_results(path) == ()
    store([ablated("a", 0.1), ablated("b", 0.2)], path)
    store([ablated("a", 0.3)], path)
    assert read_results(path) == (ablated("a", 0.3), ablated("b", 0.2))
