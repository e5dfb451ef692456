"""Losses by TensorFlow's own CTC operation, which XLA does not have."""

import keras
import numpy as np
import tensorflow as tf

STEPS, FEATURES, CLASSES, LABELS = 30, 16, 12, 5


class Endpoint(keras.layers.Layer):
    """As Keras' example of captchas has it: a layer adds the loss."""

    def call(self, labels, logits):
        sparse = tf.sparse.from_dense(tf.cast(labels, tf.int32))
        batch = tf.shape(logits)[0]
        loss = tf.compat.v1.nn.ctc_loss(
            labels=sparse,
            inputs=tf.transpose(logits, (1, 0, 2)),
            sequence_length=tf.fill((batch,), STEPS),
        )
        self.add_loss(tf.reduce_mean(loss))
        return logits


def data():
    frames = np.random.rand(64, STEPS, FEATURES).astype("float32")
    return frames, np.random.randint(1, CLASSES, (64, LABELS))


def by_layer():
    image, label = keras.Input((STEPS, FEATURES)), keras.Input((LABELS,), dtype="float32")
    model = keras.Model([image, label], Endpoint()(label, keras.layers.Dense(CLASSES)(image)))
    model.compile("adam")
    frames, labels = data()
    return model, ((frames, labels.astype("float32")), None)


class Reader(keras.Model):
    """A step of its own, with sparse labels."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            sparse = tf.sparse.from_dense(tf.cast(y, tf.int32))
            lengths = tf.fill((tf.shape(x)[0],), STEPS)
            loss = tf.nn.ctc_loss(
                sparse, logits, None, lengths, logits_time_major=False, blank_index=-1
            )
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": tf.reduce_mean(loss)}


def by_step():
    x = keras.Input((STEPS, FEATURES))
    model = Reader(x, keras.layers.Dense(CLASSES)(x))
    model.compile("adam")
    return model, data()
