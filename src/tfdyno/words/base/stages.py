"""A stage of a run under what it is a part of."""

from __future__ import annotations

from tfdyno.core.base.lasting import Lasting
from tfdyno.words.base.language import say


def under(title: str, stage: str) -> str:
    """Write ``run 1 of 5: importing TensorFlow``; what lasts on the terminal stays as it is."""
    if isinstance(stage, Lasting):
        return stage
    return say("{title}: {stage}", title=title, stage=stage)
