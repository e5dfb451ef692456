from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.runtime.fronts import ALONE, LINEAR, MIXING, WEIGHTS, Here, signature

from tfdyno.serving.front.batcher import Batcher
from tfdyno.serving.front.queue import Deadline, Limits, deadline_of
from tfdyno.serving.front.table import Refused
from tfdyno.serving.front.wire import ModelError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tfdyno.core.base.untyped import Spec, Value
    from tfdyno.core.messages.serve import SignatureFacts


def batcher(model: Here, facts: SignatureFacts = LINEAR, **limits: Any) -> Batcher:
    chosen = {"rows": 4, "delay_s": 0.001, "waiting_rows": 8, **limits}
    return Batcher(model, signature(facts), Limits(**chosen), lambda _rows, _call_s: None)


def x(*values: float) -> dict[str, Any]:
    return {"x": np.array([[value, 0, 0] for value in values], dtype=np.float32)}


async def asked(waiting: Batcher, *values: float, deadline_s: float = math.inf) -> list[float]:
    answer = await waiting.infer(x(*values), Deadline(client_s=deadline_s))
    return [float(y) for y in answer.array("y")[:, 0]]


async def outcome(waiting: Coroutine[Any, Any, Any]) -> Value:
    try:
        return await waiting
    except Refused as refused:
        return refused.code, refused.text


class Skipping(asyncio.SelectorEventLoop):
    """A loop whose clock a test puts forward: what then is due does not hang on the machine."""

    skipped_s = 0.0

    def time(self) -> float:
        return super().time() + self.skipped_s


def skip(seconds_s: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Skipping)
    loop.skipped_s += seconds_s


def in_loop(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=Skipping) as runner:
        runner.run(asyncio.wait_for(work, 600))


def test_requests_that_wait_together_are_one_call_and_get_their_own_rows() -> None:
    async def work() -> None:
        model = Here()
        model.gate.clear()
        waiting = batcher(model, calls=1)
        tasks = [asyncio.create_task(asked(waiting, *rows)) for rows in ((1,), (2, 3), (4,), (5,))]
        await asyncio.sleep(0.01)
        model.gate.set()
        assert await asyncio.gather(*tasks) == [[1], [2, 3], [4], [5]]
        assert model.calls == [1, 4]
        assert waiting.queue.empty()

    in_loop(work())


def test_a_request_of_more_rows_than_a_call_may_have_is_split_and_put_together() -> None:
    async def work() -> None:
        model = Here()
        assert await asked(batcher(model), *range(11)) == list(range(11))
        assert model.calls == [4, 4, 3]

    in_loop(work())


@pytest.mark.parametrize("facts", [ALONE, MIXING])
def test_without_rows_every_request_is_a_call_of_its_own(facts: SignatureFacts) -> None:
    async def work() -> None:
        model = Here()
        waiting = batcher(model, facts)
        answers = await asyncio.gather(asked(waiting, 1, 2), asked(waiting, 3, 4))
        assert list(answers) == [[1, 2], [3, 4]]
        assert model.calls == [2, 2]

    in_loop(work())


def test_one_bad_request_does_not_spoil_those_it_was_joined_with() -> None:
    async def work() -> None:
        model = Here()
        model.gate.clear()
        model.error, model.poison = ModelError(500, "InvalidArgumentError: 666"), 666
        waiting = batcher(model, calls=1)
        tasks = [asyncio.create_task(outcome(asked(waiting, value))) for value in (0, 1, 666, 2)]
        await asyncio.sleep(0.01)
        model.gate.set()
        bad = (400, "InvalidArgumentError: 666")
        assert await asyncio.gather(*tasks) == [[0], [1], bad, [2]]

    in_loop(work())


def test_one_bad_value_among_64_costs_two_calls_for_each_halving() -> None:
    async def work() -> None:
        model = Here()
        model.gate.clear()
        model.error, model.poison = ModelError(500, "InvalidArgumentError: 666"), 666
        waiting = batcher(model, calls=1, rows=64, waiting_rows=1000)
        values = [0, *range(40), 666, *range(41, 64)]
        tasks = [asyncio.create_task(outcome(asked(waiting, value))) for value in values]
        await asyncio.sleep(0.01)
        model.gate.set()
        answers = await asyncio.gather(*tasks)
        assert [answer for answer in answers if answer[0] != 400] == [
            [value] for value in values if value != 666
        ]
        assert answers[41] == (400, "InvalidArgumentError: 666")
        assert model.calls[:2] == [1, 64]
        assert len(model.calls[2:]) == 2 * 6

    in_loop(work())


def test_an_answer_that_cannot_be_read_on_the_second_try_leaves_nobody_waiting() -> None:
    class Breaking(Here):
        async def infer(self, parts: Value, signature: Spec) -> Value:
            await super().infer(parts, signature)
            raise ModelError(500, "no") if len(parts) > 1 else ValueError("a string is cut off")

    async def work() -> None:
        waiting = batcher(Breaking(), calls=1)
        answers = await asyncio.gather(*(outcome(asked(waiting, value)) for value in range(4)))
        assert answers == [(500, "The answer could not be read: a string is cut off")] * 4
        assert waiting.queue.empty()

    in_loop(work())


def test_the_models_own_failure_is_500() -> None:
    async def work() -> None:
        model = Here()
        model.error = ModelError(500, "out of memory")
        assert await outcome(asked(batcher(model), 1)) == (500, "out of memory")

    in_loop(work())


def test_a_model_process_that_is_gone_fails_what_waits_and_nothing_hangs() -> None:
    async def work() -> None:
        model = Here()
        model.gate.clear()
        model.error = Refused(503, "gone", retry_after_s=1)
        waiting = batcher(model)
        tasks = [asyncio.create_task(outcome(asked(waiting, value))) for value in range(6)]
        await asyncio.sleep(0.01)
        model.gate.set()
        assert await asyncio.gather(*tasks) == [(503, "gone")] * 6
        assert waiting.queue.empty()

    in_loop(work())


def test_a_deadline_ends_the_wait_and_what_still_waits_is_not_computed() -> None:
    async def work() -> None:
        model = Here()
        model.gate.clear()
        waiting = batcher(model, calls=1)
        now_s = asyncio.get_running_loop().time()
        first = asyncio.create_task(asked(waiting, 1))
        late = asyncio.create_task(outcome(asked(waiting, 2, deadline_s=now_s + 0.02)))
        code, text = await late
        assert (code, "deadline passed" in text) == (504, True)
        model.gate.set()
        assert await first == [1]
        assert model.calls == [1]

    in_loop(work())


def held(own_s: float, **limits: Any) -> tuple[Here, Batcher, Deadline]:
    model = Here()
    model.gate.clear()
    now_s = asyncio.get_running_loop().time()
    return model, batcher(model, **limits), deadline_of(now_s, own_s, math.inf, 0.0)


def test_what_waited_past_the_servers_own_deadline_is_503_and_not_computed() -> None:
    async def work() -> None:
        model, waiting, deadline = held(0.02, calls=1)
        first = asyncio.create_task(asked(waiting, 1))
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="not computed") as refused:
            await waiting.infer(x(2), deadline)
        assert (refused.value.code, refused.value.retry_after_s) == (503, 1)
        model.gate.set()
        assert await first == [1]
        assert model.calls == [1]

    in_loop(work())


def test_what_is_computed_may_take_the_servers_deadline_twice_then_it_is_504() -> None:
    async def work() -> None:
        model, waiting, deadline = held(60.0)
        in_time = asyncio.create_task(waiting.infer(x(3), deadline))
        await asyncio.sleep(0.01)  # longer than the delay after which the call begins
        skip(70.0)
        await asyncio.sleep(0.01)
        assert not in_time.done()
        model.gate.set()
        assert (await in_time).array("y")[0, 0] == 3
        model.gate.clear()
        now_s = asyncio.get_running_loop().time()
        late = asyncio.create_task(waiting.infer(x(4), deadline_of(now_s, 60.0, math.inf, 0.0)))
        await asyncio.sleep(0.01)
        skip(121.0)
        with pytest.raises(Refused, match="did not answer") as refused:
            await late
        assert refused.value.code == 504

    in_loop(work())


def test_a_piece_that_is_refused_takes_the_others_of_its_request_out_of_the_queue() -> None:
    async def work() -> None:
        model, waiting, _ = held(1.0, calls=1)
        now_s = asyncio.get_running_loop().time()
        late = Deadline(client_s=now_s + 0.02)
        with pytest.raises(Refused):
            await waiting.infer(x(*range(8)), late)
        await asyncio.sleep(0.005)
        assert waiting.queue.waiting_rows == 0
        model.gate.set()

    in_loop(work())


def test_a_client_that_leaves_takes_its_rows_out_of_the_queue() -> None:
    async def work() -> None:
        model = Here()
        model.gate.clear()
        waiting = batcher(model, calls=1)
        first, left = (asyncio.create_task(asked(waiting, value)) for value in (1, 2))
        await asyncio.sleep(0.005)
        left.cancel()
        await asyncio.sleep(0)
        assert waiting.queue.waiting_rows == 0
        model.gate.set()
        assert await first == [1]
        assert model.calls == [1]

    in_loop(work())


def test_a_full_queue_refuses_and_takes_again_when_it_is_empty() -> None:
    async def work() -> None:
        model = Here()
        model.gate.clear()
        waiting = batcher(model, calls=1, waiting_rows=3)
        tasks = [asyncio.create_task(outcome(asked(waiting, value))) for value in range(6)]
        await asyncio.sleep(0.01)
        model.gate.set()
        answers = await asyncio.gather(*tasks)
        assert answers[:4] == [[0], [1], [2], [3]]
        assert [code for code, _ in answers[4:]] == [429, 429]
        assert await asked(waiting, 9) == [9]

    in_loop(work())


def test_a_model_that_gives_other_rows_is_an_error_and_no_mix_up() -> None:
    class Odd(Here):
        async def infer(self, parts: Value, signature: Spec) -> Value:
            return {"y": np.zeros((1, 2), dtype=np.float32)}

    async def work() -> None:
        code, text = await outcome(asked(batcher(Odd()), 1, 2))
        assert code == 500
        assert "another number of rows" in text

    in_loop(work())


def test_many_requests_at_random_all_get_their_own_answer() -> None:
    async def work() -> None:
        model = Here()
        waiting = batcher(model, rows=16, waiting_rows=10_000)
        random = np.random.default_rng(1)

        async def one() -> None:
            await asyncio.sleep(float(random.random()) * 0.05)
            rows = random.normal(size=(int(random.integers(1, 40)), 3)).astype(np.float32)
            answer = await waiting.infer({"x": rows})
            np.testing.assert_allclose(answer.array("y"), rows @ WEIGHTS, rtol=1e-5, atol=1e-5)

        await asyncio.gather(*(one() for _ in range(300)))
        assert max(model.calls) == 16
        assert len(model.calls) < 1000

    in_loop(work())


@pytest.mark.parametrize(("code", "text", "told"), [(400, "a", 400), (500, "b", 500)])
def test_what_the_model_process_rejects_stays_400(code: int, text: str, told: int) -> None:
    async def work() -> None:
        model = Here()
        model.error = ModelError(code, text)
        assert await outcome(asked(batcher(model), 1)) == (told, text)

    in_loop(work())
