"""BERT-base (Devlin et al. 2018, arXiv:1810.04805) for classification, sequence of 128 tokens."""

import keras
from keras import layers

VOCABULARY, WIDTH, HIDDEN, HEADS, DEPTH, LENGTH = 30522, 768, 3072, 12, 12, 128


def block(x):
    y = layers.MultiHeadAttention(HEADS, WIDTH // HEADS, dropout=0.1)(x, x)
    x = layers.LayerNormalization()(layers.Add()([x, layers.Dropout(0.1)(y)]))
    y = layers.Dense(WIDTH)(layers.Dense(HIDDEN, activation="gelu")(x))
    return layers.LayerNormalization()(layers.Add()([x, layers.Dropout(0.1)(y)]))


class Positions(layers.Layer):
    """Adds a trained vector to every position."""

    def build(self, shape):
        self.table = self.add_weight(shape=shape[1:], name="table")

    def call(self, x):
        return x + self.table


def build():
    tokens = keras.Input((LENGTH,), dtype="int32", name="tokens")
    x = Positions()(layers.Embedding(VOCABULARY, WIDTH)(tokens))
    x = layers.Dropout(0.1)(layers.LayerNormalization()(x))
    for _ in range(DEPTH):
        x = block(x)
    pooled = layers.Dense(WIDTH, activation="tanh")(x[:, 0])
    model = keras.Model(tokens, layers.Dense(2)(pooled), name="bert_base")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.AdamW(2e-5), loss=loss)
    return model
