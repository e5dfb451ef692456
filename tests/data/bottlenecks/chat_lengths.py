"""Next word of chat messages; a batch is as wide as its longest message."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

WORDS, WIDTH, BATCH = 500, 32, 16
keras.utils.set_random_seed(26)
rng = np.random.default_rng(26)
messages = [rng.integers(1, WORDS, rng.integers(8, 240)) for _ in range(1280)]

model = keras.Sequential(
    [
        layers.Embedding(WORDS, WIDTH),
        layers.Conv1D(WIDTH, 3, padding="causal", activation="relu"),
        layers.Conv1D(WIDTH, 3, padding="causal", activation="relu", dilation_rate=2),
        layers.Dense(WORDS),
    ]
)
model.build((None, None))
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)


@tf.function
def train_step(words):
    with tf.GradientTape() as tape:
        logits = model(words[:, :-1], training=True)
        loss = cross_entropy(words[:, 1:], logits)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


def batches():
    for start in range(0, len(messages), BATCH):
        part = messages[start : start + BATCH]
        longest = max(map(len, part))
        yield np.stack([np.pad(words, (0, longest - len(words))) for words in part])


for epoch in range(2):
    rng.shuffle(messages)
    for number, batch in enumerate(batches()):
        loss = train_step(tf.constant(batch, dtype=tf.int32))
    print(f"epoch {epoch}: {float(loss):.3f}")
