from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.train.training import TrainOutcome

if TYPE_CHECKING:
    from tfdyno.core.measure.software import Software


def test_a_child_may_say_any_part_of_its_software() -> None:
    some: tuple[Software, ...] = (
        {}, {"tensorflow": "2.21.0", "device": "gpu", "devices": ["NVIDIA L4"]},
    )  # fmt: skip
    for said in some:
        outcome = TrainOutcome(software=said, epochs=1, steps=1, updates=1, history={})
        assert from_builtins(to_builtins(outcome), TrainOutcome) == outcome
        assert to_builtins(outcome)["software"] == said
