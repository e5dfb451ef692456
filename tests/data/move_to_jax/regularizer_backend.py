"""A regularizer, a constraint, an activation and a loss by tf.keras.backend."""

import numpy as np
import tensorflow as tf
import tensorflow.keras.backend as K
from tensorflow.keras import constraints, layers, regularizers


class Orthogonal(regularizers.Regularizer):
    def __init__(self, strength=0.1):
        self.strength = strength

    def __call__(self, w):
        g = K.dot(K.transpose(w), w)
        return self.strength * tf.reduce_sum(tf.square(g - tf.eye(tf.shape(w)[1])))


class Clip(constraints.Constraint):
    def __call__(self, w):
        return K.clip(w, -1.0, 1.0)


def mish(x):
    return x * K.tanh(K.softplus(x))


m = tf.keras.Sequential(
    [
        layers.Input((6,)),
        layers.Dense(4, activation=mish, kernel_regularizer=Orthogonal(), kernel_constraint=Clip()),
        layers.Dense(1),
    ]
)


def rmse(y_true, y_pred):
    return K.sqrt(K.mean(K.square(y_pred - y_true)))


m.compile("adam", loss=rmse)
m.fit(np.random.rand(16, 6), np.random.rand(16, 1), verbose=0)
