"""Two layers of attention in 16 bits, which cuDNN fuses under JAX."""

import keras


def narrow() -> keras.Model:
    return model(64)


def wide() -> keras.Model:
    return model(160)


def model(width: int) -> keras.Model:
    keras.config.set_dtype_policy("mixed_bfloat16")
    given = keras.Input((512, 256))
    x = keras.layers.MultiHeadAttention(4, width)(given, given, use_causal_mask=True)
    x = keras.layers.MultiHeadAttention(4, width)(x, x)
    made = keras.Model(given, keras.layers.Dense(4, dtype="float32")(x))
    made.compile("adam", "mse", jit_compile=True)
    return made
