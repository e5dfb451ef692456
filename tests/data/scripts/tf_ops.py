"""Models that only TensorFlow can run: a layer of tf.* operations, and a train_step of one's own."""

import keras
import tensorflow as tf


class Squash(keras.layers.Layer):
    def call(self, x):
        return tf.math.sinh(tf.nn.relu(x)) * tf.cast(tf.shape(x)[0] > 0, x.dtype)


class OwnStep(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


def layers_of_tf():
    inputs = keras.Input((16,))
    x = Squash()(keras.layers.Dense(32)(inputs))
    model = keras.Model(inputs, keras.layers.Dense(4)(x))
    model.compile("sgd", "mse")
    return model


def own_train_step():
    inputs = keras.Input((16,))
    model = OwnStep(inputs, keras.layers.Dense(4)(keras.layers.Dense(32)(inputs)))
    model.compile("adam", "mse")
    return model


def small_cnn():
    """Runs on both paths."""
    inputs = keras.Input((32, 32, 3))
    x = keras.layers.Conv2D(16, 3, padding="same", use_bias=False)(inputs)
    x = keras.layers.Activation("relu")(keras.layers.BatchNormalization()(x))
    x = keras.layers.Conv2D(32, 3, strides=2, padding="same", use_bias=False)(x)
    x = keras.layers.Activation("relu")(keras.layers.BatchNormalization()(x))
    x = keras.layers.GlobalAveragePooling2D()(x)
    model = keras.Model(inputs, keras.layers.Dense(10)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss)
    return model
