"""Words for times, classes and shapes."""

from __future__ import annotations

from dataclasses import replace

from tests.view.edge_reports import FITS, IMAGE, LACKS, SCORES

from tfdyno.words.deploy.edge import class_words, shape_words, unverified_words


def test_a_range_over_classes_names_both_ends() -> None:
    assert class_words(FITS) == "real time"
    assert class_words(LACKS) == "real time to slow"


def test_devices_with_unverified_figures_are_counted() -> None:
    doubted = replace(FITS, unverified="its clock")
    assert unverified_words((FITS, LACKS)) == ""
    assert unverified_words((doubted, LACKS)).startswith("Figures of 1 device are unverified")
    assert unverified_words((doubted, doubted)).startswith("Figures of 2 devices are unverified")


def test_shapes_say_what_is_open_and_how_integers_are_read() -> None:
    assert shape_words(SCORES) == "float32 [any, 10]"
    assert shape_words(IMAGE) == "int8 [any, 28, 28, 1], value = 0.004 × (q + 128)"
