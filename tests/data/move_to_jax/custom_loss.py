"""Focal and dice loss, by functions and by a class."""

import numpy as np
import tensorflow as tf
import tensorflow.keras.backend as K
from tensorflow import keras


def focal_loss(gamma=2.0, alpha=0.25):
    def loss(y_true, y_pred):
        y_true = tf.cast(y_true, tf.float32)
        y_pred = tf.clip_by_value(y_pred, K.epsilon(), 1 - K.epsilon())
        p_t = tf.where(tf.equal(y_true, 1), y_pred, 1 - y_pred)
        return -tf.reduce_mean(alpha * tf.pow(1.0 - p_t, gamma) * tf.math.log(p_t), axis=-1)

    return loss


def dice_coefficient(y_true, y_pred, smooth=1.0):
    y_true_f = K.flatten(y_true)
    y_pred_f = K.flatten(y_pred)
    intersection = K.sum(y_true_f * y_pred_f)
    return (2.0 * intersection + smooth) / (K.sum(y_true_f) + K.sum(y_pred_f) + smooth)


class Weighted(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return tf.reduce_mean(tf.square(y_true - y_pred), axis=-1)


x, y = np.random.rand(16, 4).astype("float32"), np.random.randint(0, 2, (16, 1)).astype("float32")
for loss in (focal_loss(), Weighted()):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer="sgd", loss=loss, metrics=[dice_coefficient])
    model.fit(x, y, epochs=1, verbose=0)
