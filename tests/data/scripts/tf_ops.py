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


def recurrent():
    """Runs on both paths; the loop over the sequence is a loop in the program as well."""
    tokens = keras.Input((20,), dtype="int32")
    x = keras.layers.LSTM(32)(keras.layers.Embedding(100, 16)(tokens))
    model = keras.Model(tokens, keras.layers.Dense(2)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model


def structured():
    """Inputs, outputs and sample weights by name, and an embedding with a sparse gradient."""
    wide, words = keras.Input((8,), name="wide"), keras.Input((6,), dtype="int32", name="words")
    pooled = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(50, 4)(words))
    both = keras.layers.Concatenate()([keras.layers.Dense(4)(wide), pooled])
    outputs = {"kind": keras.layers.Dense(3, name="kind")(both)}
    outputs["size"] = keras.layers.Dense(2, name="size")(both)
    model = keras.Model({"wide": wide, "words": words}, outputs)
    sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("rmsprop", {"kind": sparse, "size": "mse"})
    x = {"wide": tf.ones((32, 8)), "words": tf.ones((32, 6), tf.int32)}
    y = {"kind": tf.ones((32,), tf.int32), "size": tf.ones((32, 2))}
    weights = {"kind": tf.ones((32,)), "size": tf.ones((32,))}
    return model, tf.data.Dataset.from_tensor_slices((x, y, weights)).batch(8)


class Pair(keras.Model):
    """Two networks with an optimizer each; the model itself cannot be called."""

    def __init__(self):
        super().__init__()
        self.maker = keras.Sequential([keras.layers.Dense(8)])
        self.judge = keras.Sequential([keras.layers.Dense(1)])

    def compile(self, maker_optimizer, judge_optimizer):
        super().compile()
        self.optimizers = {"maker": maker_optimizer, "judge": judge_optimizer}

    def train_step(self, real):
        noise = tf.random.normal((tf.shape(real)[0], 8))
        for name in ("judge", "maker"):
            network = getattr(self, name)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self.judge(self.maker(noise)) ** 2 + self.judge(real))
            gradients = tape.gradient(loss, network.trainable_weights)
            self.optimizers[name].apply_gradients(zip(gradients, network.trainable_weights))
        return {"loss": loss}


def two_networks():
    model = Pair()
    model.compile(keras.optimizers.Adam(1e-4), keras.optimizers.Adam(1e-4))
    return model, tf.data.Dataset.from_tensors(tf.ones((32, 8)))
