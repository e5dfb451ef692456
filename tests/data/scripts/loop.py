"""A loop of one's own: the step is a tf.function with a gradient tape."""

import keras
import tensorflow as tf

model = keras.Sequential(
    [
        keras.layers.Input((32, 32, 3)),
        keras.layers.Conv2D(8, 3),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ]
)
optimizer = keras.optimizers.Adam()
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def main():
    images = tf.random.normal((64, 32, 32, 3))
    data = tf.data.Dataset.from_tensor_slices((images, tf.zeros((64,), tf.int32)))
    for x, y in data.batch(16).repeat(100_000):
        train_step(x, y)


if __name__ == "__main__":
    main()
