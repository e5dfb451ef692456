from __future__ import annotations

from tfdyno.core.base.lasting import Lasting


def test_it_is_text_and_what_is_made_of_it_does_not_last() -> None:
    line = Lasting("GPU 0 is shared")
    assert line == "GPU 0 is shared"
    assert not isinstance(f"trial 3: {line}", Lasting)
