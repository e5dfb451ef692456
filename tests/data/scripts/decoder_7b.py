"""A decoder of 6.9 billion parameters from Keras' own layers, as large as LLaMA-7B."""

import keras
from keras import layers

VOCABULARY, WIDTH, HIDDEN, HEADS, DEPTH, LENGTH = 32000, 4096, 11008, 32, 32, 2048


def block(x):
    y = layers.RMSNormalization()(x)
    y = layers.MultiHeadAttention(HEADS, WIDTH // HEADS, use_bias=False)(y, y, use_causal_mask=True)
    x = layers.Add()([x, y])
    y = layers.RMSNormalization()(x)
    gate = layers.Dense(HIDDEN, activation="silu", use_bias=False)(y)
    y = layers.Multiply()([gate, layers.Dense(HIDDEN, use_bias=False)(y)])
    return layers.Add()([x, layers.Dense(WIDTH, use_bias=False)(y)])


def build():
    keras.config.set_dtype_policy("mixed_bfloat16")
    tokens = keras.Input((LENGTH,), dtype="int32", name="tokens")
    x = layers.Embedding(VOCABULARY, WIDTH)(tokens)
    for _ in range(DEPTH):
        x = block(x)
    logits = layers.Dense(VOCABULARY, use_bias=False)(layers.RMSNormalization()(x))
    model = keras.Model(tokens, logits, name="decoder_7b")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.AdamW(1e-4), loss=loss)
    return model
