"""A callback that writes summaries and changes the learning rate."""

import numpy as np
import tensorflow as tf
from tensorflow import keras


class Writer(keras.callbacks.Callback):
    def __init__(self, folder):
        super().__init__()
        self.writer = tf.summary.create_file_writer(folder)

    def on_epoch_end(self, epoch, logs=None):
        rate = self.model.optimizer.learning_rate
        norm = tf.linalg.global_norm(self.model.trainable_variables)
        with self.writer.as_default():
            tf.summary.write("loss", tf.constant(logs["loss"]), step=epoch)
            tf.summary.write("norm", norm, step=epoch)
        rate.assign(rate * 0.9)
        print(epoch, rate.numpy())


model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.01), "mse")
callbacks = [Writer("logs"), keras.callbacks.ModelCheckpoint("best.keras", monitor="loss")]
model.fit(np.random.rand(16, 8), np.random.rand(16, 1), epochs=2, verbose=0, callbacks=callbacks)
