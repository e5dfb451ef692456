"""A training loop of one's own with a gradient tape, without compile and fit."""

import keras
import tensorflow as tf
from keras import layers

BATCH_SIZE = 64
model = keras.Sequential(
    [keras.Input((32,)), layers.Dense(128, activation="relu"), layers.Dense(4)], name="own_loop"
)
optimizer = keras.optimizers.Adam(1e-3)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(features, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def main():
    features = tf.random.normal((1000, 32))
    labels = tf.random.uniform((1000,), maxval=4, dtype=tf.int32)
    data = tf.data.Dataset.from_tensor_slices((features, labels))
    for epoch in range(3):
        for batch in data.shuffle(1000).batch(BATCH_SIZE, drop_remainder=True):
            loss = train_step(*batch)
        print(epoch, float(loss))


if __name__ == "__main__":
    main()
