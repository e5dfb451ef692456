"""Imitates the moves of an expert on a simulated cart."""

import keras
import numpy as np

keras.utils.set_random_seed(29)
rng = np.random.default_rng(29)


def episodes(count, length=100):
    state = rng.normal(0, 0.1, (count, 4))
    for _ in range(length):
        push = np.sign(state[:, 2] + 0.3 * state[:, 3])
        yield state.astype("float32").copy(), (push > 0).astype("float32")
        state[:, 0] += 0.02 * state[:, 1]
        state[:, 1] += 0.02 * (push - state[:, 2])
        state[:, 2] += 0.02 * state[:, 3]
        state[:, 3] += 0.02 * (10 * state[:, 2] - 12 * push) + rng.normal(0, 0.05, count)


states, moves = (np.concatenate(part) for part in zip(*episodes(40)))
policy = keras.Sequential(
    [
        keras.Input((4,)),
        keras.layers.Dense(24, activation="tanh"),
        keras.layers.Dense(24, activation="tanh"),
        keras.layers.Dense(1, activation="sigmoid"),
    ],
    name="policy",
)
policy.compile(optimizer="adam", loss="binary_crossentropy", jit_compile=False)
policy.fit(states, moves, batch_size=2, epochs=4, verbose=2)
