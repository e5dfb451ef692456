"""What the loop tells of steps and epochs becomes a pace; alone there is no other worker."""

from __future__ import annotations

import json

import pytest
from tests.runtime.forks import forked

pytestmark = pytest.mark.tf
CODE = """
import json
import keras
from tfdyno.runtime.train.worker_group import WorkerGroup

class Wait:
    taken = 0
    def take_s(self):
        self.taken += 1
        return 0.3

class Step:
    wait = Wait()

model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
company = WorkerGroup(model, Step)
asked = []
company._ranks.straggler = lambda *given: asked.append(given)
for epoch in (1, 2):
    for _ in range(4):
        company.steps(2)
    company.epoch_end(epoch)
print(json.dumps([asked, Step.wait.taken, company.notes]))
"""


def test_the_first_call_of_an_epoch_is_no_part_of_its_pace() -> None:
    asked, taken, notes = json.loads(forked(CODE))
    assert [steps for _, _, steps in asked] == [6, 6]  # of 8
    assert [wait_s for wait_s, _, _ in asked] == pytest.approx([0.05, 0.05])  # 0.3 s / 6
    assert taken == 4  # at the begin and the end of both epochs
    assert notes == []
