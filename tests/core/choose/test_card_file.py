from __future__ import annotations

from tests.swept import card_file, loop

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.choose.card_file import CardFile


def test_a_card_file_survives_json() -> None:
    card = card_file(loop(4096, 1e-6))
    assert from_json(to_json(card), CardFile) == card


def test_its_words_name_date_and_release() -> None:
    card = card_file(loop(4096, 1e-6))
    assert card.words() == "the sweep of these processors of 2026-11-26 (TensorFlow 2.21.0)"
    other = card_file(loop(4096, 1e-6), card="t4", framework="jax", version="0.10")
    assert other.words(same_software=False) == (
        "the sweep of this card of 2026-11-26 (JAX 0.10), its silicon alone: "
        "the answer is for other software"
    )
