"""A train_step for each backend, as the examples of keras.io have it."""

import keras
import numpy as np


class M(keras.Model):
    def train_step(self, *args, **kwargs):
        if keras.backend.backend() == "jax":
            return self._jax_train_step(*args, **kwargs)
        elif keras.backend.backend() == "tensorflow":
            return self._tf_train_step(*args, **kwargs)

    def _jax_train_step(self, state, data):
        return super().train_step(state, data)

    def _tf_train_step(self, data):
        import tensorflow as tf

        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        g = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(g, self.trainable_weights))
        return {"loss": loss}


i = keras.Input((8,))
m = M(i, keras.layers.Dense(1)(i))
m.compile("adam", "mse")
m.fit(np.random.rand(16, 8), np.random.rand(16, 1), verbose=0)
