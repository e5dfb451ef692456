"""The step is a method of a class and makes its optimizer at the first call."""

import tensorflow as tf
from tensorflow import keras


class Trainer:
    def __init__(self):
        self.model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(4)])
        self.optimizer = None

    @tf.function(jit_compile=True)
    def train_step(self, x, y):
        if self.optimizer is None:
            self.optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.model(x, training=True) - y) ** 2)
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def train(self, data):
        for x, y in data:
            self.train_step(x, y)


data = tf.data.Dataset.from_tensor_slices((tf.ones((64, 16)), tf.ones((64, 4))))
Trainer().train(data.batch(16).repeat())
