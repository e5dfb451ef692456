"""A diffusion model as Keras' example has it: no call, one batch size, noise of the global seed."""

import keras
import numpy as np
import tensorflow as tf

BATCH, SIZE = 16, 8


class Diffusion(keras.Model):
    def __init__(self):
        super().__init__()
        self.normalizer = keras.layers.Normalization()
        image = keras.Input((SIZE, SIZE, 3))
        self.network = keras.Model(image, keras.layers.Conv2D(3, 3, padding="same")(image))
        self.averaged = keras.models.clone_model(self.network)

    def train_step(self, images):
        images = self.normalizer(images, training=True)
        noise = keras.random.normal((BATCH, SIZE, SIZE, 3))
        with tf.GradientTape() as tape:
            loss = self.loss(noise, self.network(images + noise, training=True))
        weights = self.network.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        for weight, mean in zip(self.network.weights, self.averaged.weights, strict=True):
            mean.assign(0.9 * mean + 0.1 * weight)
        return {"loss": loss}


def build():
    images = np.random.default_rng(0).random((64, SIZE, SIZE, 3)).astype("float32")
    data = tf.data.Dataset.from_tensor_slices(images).batch(BATCH, drop_remainder=True)
    model = Diffusion()
    model.compile("adam", keras.losses.mean_absolute_error)
    model.normalizer.adapt(data)
    return model, data
