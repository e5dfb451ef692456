"""Scripts whose models have a ``train_step`` and no ``call``, as Keras' own examples do."""

PAIR = '''
import keras, numpy as np, tensorflow as tf
from keras import layers

class Pair(keras.Model):
    """A GAN: two networks, two optimizers, and that of ``compile`` is not used."""
    def __init__(self):
        super().__init__()
        # Without an Input: the first step alone knows the sizes.
        self.critic = keras.Sequential([layers.Dense(6, activation="relu"), layers.Dense(1)])
        self.maker = keras.Sequential([WIDTHlayers.Dense(8)])
        self.noise = keras.random.SeedGenerator(3)
        self.mean = keras.metrics.Mean(name="loss")

    def compile(self, critic_optimizer, maker_optimizer):
        super().compile()
        self.critic_optimizer, self.maker_optimizer = critic_optimizer, maker_optimizer

    @property
    def metrics(self):
        return [self.mean]

    def train_step(self, real):
        real = real[0] if isinstance(real, tuple) else real
        for part, optimizer in (("critic", self.critic_optimizer), ("maker", self.maker_optimizer)):
            noise = keras.random.normal((tf.shape(real)[0], 4), seed=self.noise)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self.critic(self.maker(noise)) ** 2)
                if part == "critic":
                    loss += tf.reduce_mean((self.critic(real) - 1.0) ** 2)
            weights = getattr(self, part).trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.mean.update_state(loss)
        return {"loss": self.mean.result()}

x = np.random.default_rng(0).random((64, 8)).astype("float32")
pair = Pair()
pair.compile(keras.optimizers.Adam(1e-2), keras.optimizers.SGD(1e-2))
pair.fit(x, batch_size=16, epochs=1)
kept = (pair.optimizer, pair.critic_optimizer, pair.maker_optimizer)
print("slots", [len(one.variables) for one in kept], "built", pair.built)
'''
"""``WIDTH`` is replaced: by nothing, or by an ``Input`` of 4."""

CODER = '''
import keras, numpy as np, tensorflow as tf
from keras import layers, ops

class Coder(keras.Model):
    """As the VAE of Keras: made of networks, so that its own config holds no plain values."""
    def __init__(self, encoder, decoder, **how):
        super().__init__(**how)
        self.encoder, self.decoder = encoder, decoder
        self.noise = keras.random.SeedGenerator(5)

    def call(self, codes):
        return self.decoder(codes)  # not what the data are

    def train_step(self, data):
        with tf.GradientTape() as tape:
            codes = self.encoder(data)
            noise = keras.random.normal(ops.shape(codes), seed=self.noise)
            again = self.decoder(codes + 0.1 * noise)
            loss = ops.mean((again - data) ** 2)
        weights = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"loss": loss}

encoder = keras.Sequential([keras.Input((8,)), layers.Dense(2)], name="encoder")
decoder = keras.Sequential([layers.Dense(8)], name="decoder")
coder = Coder(encoder, decoder)
coder.compile("adam")
coder.fit(np.random.default_rng(0).random((64, 8)).astype("float32"), batch_size=16, epochs=2)
print("decoded", coder.decoder(np.zeros((1, 2), "float32")).shape)
'''

HANDED = """
import keras
import numpy as np
import tensorflow as tf

class Handed(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(1)

    def compile(self, own):
        super().compile()
        self.own = own

    def call(self, x):
        return self.inner(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.cast(self(x), "float32") - y) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.own.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}

model = Handed()
model.compile(keras.optimizers.SGD(0.1))
model.fit(np.ones((64, 4), "float32"), np.full((64, 1), 100.0, "float32"), batch_size=8, epochs=1)
"""

KEPT = HANDED.replace("super().compile()", "super().compile(optimizer=own)")
"""The optimizer that the step keeps is that of ``compile``, wrapped in mixed_float16."""
