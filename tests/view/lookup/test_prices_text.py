from __future__ import annotations

from tfdyno.view.lookup.prices_text import fetched_list


def test_a_line_per_provider_within_the_width() -> None:
    rows = [("aws", 1203, "gpuhunt", ""), ("azure", 12, "skypilot", "gpuhunt: " + "slow " * 30)]
    lines = fetched_list(rows, width=60).splitlines()
    assert lines[0].split() == ["provider", "prices", "from"]
    assert lines[1].split() == ["aws", "1,203", "gpuhunt"]
    assert max(map(len, lines)) <= 60
    assert lines[2].endswith("…")
