"""Bursts in radio data, with some hard examples mixed into every batch."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

CHANNELS, TIMES, BATCH = 32, 64, 64
keras.utils.set_random_seed(47)
rng = np.random.default_rng(47)
noise = rng.normal(size=(2048, TIMES, CHANNELS)).astype("float32")
bursts = (rng.random(2048) < 0.5).astype("float32")
noise[bursts == 1, 20:24] += 1.0


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = keras.optimizers.Adam(1e-3)
        self.optimizer.build(model.trainable_variables)
        groups = noise.reshape(128, 16, TIMES, CHANNELS), bursts.reshape(128, 16)
        self.hard = tf.data.Dataset.from_tensor_slices(groups).repeat()
        self.hard = self.hard.map(lambda x, y: (1.2 * x, y)).shuffle(48, seed=47)
        options = tf.data.Options()
        options.autotune.enabled = False
        self.hard = self.hard.with_options(options)
        self.draws = []

    @tf.function
    def step(self, x, y, hard_x, hard_y):
        x, y = tf.concat([x, hard_x], 0), tf.concat([y, hard_y], 0)
        with tf.GradientTape() as tape:
            scores = self.model(x, training=True)[:, 0]
            loss = tf.reduce_mean(keras.losses.binary_crossentropy(y, scores, from_logits=True))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply(gradients, self.model.trainable_variables)
        return loss

    def run(self, data, epochs):
        for epoch in range(epochs):
            for number, (x, y) in enumerate(data):
                if number % 16 == 0:
                    self.draws.append(iter(self.hard))
                hard_x, hard_y = next(self.draws[-1])
                loss = self.step(x, y, hard_x, hard_y)
            print(epoch, float(loss))


inputs = keras.Input((TIMES, CHANNELS))
x = layers.Conv1D(64, 5, activation="relu")(inputs)
x = layers.Conv1D(64, 5, activation="relu")(x)
model = keras.Model(inputs, layers.Dense(1)(layers.GlobalMaxPooling1D()(x)))
data = tf.data.Dataset.from_tensor_slices((noise, bursts)).batch(BATCH).cache().prefetch(2)
Trainer(model).run(data, epochs=10)
