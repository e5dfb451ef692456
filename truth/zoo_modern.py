"""Builders of the models in ``published/modern.csv`` that are not of Keras 3.

As in ``zoo.py``, whose batch normalisation (one pass for its statistics) is theirs too: Flax and
the fused operation of Keras 2 have it. Structures follow the measured scripts.
"""

import sys
from pathlib import Path

import keras
from keras import layers, ops

sys.path.append(str(Path(__file__).parent))
import zoo


def compiled(inputs, outputs, optimizer, loss, metrics=()):
    """A model whose result and loss are float32."""
    outputs = layers.Activation("linear", dtype="float32")(outputs)
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=optimizer, loss=loss, metrics=list(metrics))
    return model


def from_logits():
    """Cross-entropy of integer targets."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


# --------------------------------------------------------------------- Flax, without optimizer


class GradientsOnly(keras.optimizers.Optimizer):
    """Keeps each gradient and leaves the weights alone: what ``jax.grad`` returns."""

    def build(self, variables):
        """Make room for the gradients."""
        if not self.built:
            super().build(variables)
            self._gradients = self.add_optimizer_variables(variables, "gradient")

    def update_step(self, gradient, variable, learning_rate):
        """Keep the gradient."""
        self.assign(self._gradients[self._get_variable_index(variable)], gradient)


def resnet_of_flax(depths, basic=False):
    """ResNet v1.5 with the mean square of its 1,000 results as loss (LuxDL perf/resnet)."""
    inputs = keras.Input((224, 224, 3))
    x = zoo.resnet_features(inputs, depths, basic=basic)[-1]
    x = layers.Dense(1000)(layers.GlobalAveragePooling2D()(x))
    return compiled(inputs, x, GradientsOnly(0.1), "mse")


for _name, _depths, _basic in (
    ("resnet18", (2, 2, 2, 2), True),
    ("resnet34", (3, 4, 6, 3), True),
    ("resnet50", (3, 4, 6, 3), False),
    ("resnet152", (3, 8, 36, 3), False),
):
    zoo.register(globals(), f"{_name}_flax_224", resnet_of_flax, depths=_depths, basic=_basic)

# ------------------------------------------------- keras.applications (keras-xla-benchmarks)


def application(size, architecture):
    """A model of keras.applications as it comes, with its preprocessing and softmax."""
    model = getattr(keras.applications, architecture)(weights=None, input_shape=(size, size, 3))
    model.compile(optimizer=zoo.momentum(), loss="sparse_categorical_crossentropy")
    return model


for _name, _size, _architecture in (
    ("mobilenet", 224, "MobileNet"),
    ("vgg16_top", 224, "VGG16"),
    ("densenet121", 224, "DenseNet121"),
    ("resnetv2_101", 224, "ResNet101V2"),
    ("inception_v3", 299, "InceptionV3"),
    ("nasnetlarge", 331, "NASNetLarge"),
    ("efficientnet_b4", 380, "EfficientNetB4"),
    ("efficientnet_b5", 456, "EfficientNetB5"),
    ("efficientnet_b6", 528, "EfficientNetB6"),
    ("efficientnet_b7", 600, "EfficientNetB7"),
    ("efficientnetv2_b2", 260, "EfficientNetV2B2"),
    ("efficientnetv2_b3", 300, "EfficientNetV2B3"),
    ("efficientnetv2_s", 384, "EfficientNetV2S"),
    ("efficientnetv2_m", 480, "EfficientNetV2M"),
):
    zoo.register(globals(), f"{_name}_{_size}", application, size=_size, architecture=_architecture)

# ------------------------------------------------------------------------------- transformers


def vit_large_patch16_224():
    """ViT-L/16 with ten classes; the optimizer is not stated, momentum is the script's default."""
    inputs = keras.Input((224, 224, 3))
    x = layers.Reshape((-1, 1024))(layers.Conv2D(1024, 16, 16)(inputs))
    x = zoo.Position()(zoo.ClassToken()(x))
    for _ in range(24):
        x = zoo.pre_norm_block(x, 16, 4096)
    return zoo.classifier(inputs, zoo.norm(x)[:, 0], classes=10)


def small_transformer_200():
    """One block over 200 words, every head as wide as the model (mac-ml-speed-test)."""
    inputs = keras.Input((200,), dtype="int32", name="token_ids")
    x = zoo.Position()(layers.Embedding(20000, 128)(inputs))
    y = layers.MultiHeadAttention(8, 128)(x, x)
    x = zoo.norm(layers.Add()([x, layers.Dropout(0.1)(y)]))
    y = layers.Dropout(0.1)(zoo.mlp(x, 128, "relu"))
    x = layers.GlobalAveragePooling1D()(zoo.norm(layers.Add()([x, y])))
    x = layers.Dense(128, activation="relu")(layers.Dropout(0.1)(x))
    x = layers.Dense(2, activation="softmax")(layers.Dropout(0.1)(x))
    return compiled(inputs, x, zoo.adam(), "sparse_categorical_crossentropy", ["accuracy"])


def gpt_char_8_layers():
    """A decoder of bytes in Flax; one mask of dropout serves the whole batch (it is vmapped)."""

    def dropped(x):
        return layers.Dropout(0.1, noise_shape=(1, *x.shape[1:]))(x)

    inputs = keras.Input((256,), dtype="int32", name="token_ids")
    x = dropped(zoo.Position()(layers.Embedding(256, 512)(inputs)))
    for _ in range(8):
        y = zoo.attention(zoo.norm(x, 1e-5), 8, causal=True)
        x = layers.Add()([x, dropped(y)])
        y = dropped(layers.Dense(2048, activation="relu")(zoo.norm(x, 1e-5)))
        x = layers.Add()([x, dropped(layers.Dense(512)(y))])
    return compiled(inputs, layers.Dense(256)(x), zoo.adam(), from_logits())


def phobert_base_256():
    """RoBERTa of 64,001 words below ten classifiers of four classes each (absa-nlp)."""
    inputs = [
        keras.Input((256,), dtype="int32", name=name)
        for name in ("token_ids", "segment_ids", "padding_mask")
    ]
    x = layers.Embedding(64001, 768)(inputs[0])
    x = layers.Add()([x, layers.Embedding(1, 768)(inputs[1])])
    x = layers.Dropout(0.1)(zoo.norm(zoo.Position()(x), 1e-5))
    mask = layers.Reshape((1, 256))(inputs[2])
    hidden = []
    for _ in range(12):
        y = layers.Dropout(0.1)(zoo.attention(x, 12, 0.1, mask=mask))
        x = zoo.norm(layers.Add()([x, y]), 1e-5)
        y = layers.Dropout(0.1)(zoo.mlp(x, 3072))
        x = zoo.norm(layers.Add()([x, y]), 1e-5)
        hidden.append(x)
    x = layers.Dropout(0.2)(layers.Concatenate()(hidden[-4:])[:, 0])
    heads = [layers.Dense(4, activation="softmax")(x) for _ in range(10)]
    return compiled(inputs, layers.Concatenate()(heads), zoo.adam(), "binary_crossentropy")


class LowRank(layers.Layer):
    """A projection of attention that stays, and the product of two narrow ones that learns."""

    def __init__(self, projection, rank, **options):
        """Wrap a projection."""
        super().__init__(**options)
        self.projection, self.rank = projection, rank
        self.down = layers.Dense(rank, use_bias=False)
        _, heads, width = projection.kernel.shape
        self.up = layers.EinsumDense("abc,cde->abde", (None, heads, width))

    def build(self, shape):
        """Make the narrow projections."""
        self.down.build(shape)
        self.up.build((*shape[:-1], self.rank))

    def call(self, x):
        """Add both."""
        return self.projection(x) + self.up(self.down(x)) * (32.0 / self.rank)


def gpt2_128(rank=0):
    """GPT-2 over 128 tokens with AdamW and clipping; ``rank`` trains narrow products only."""
    model = zoo.decoder(seq=128, width=768, depth=12, heads=12)
    if rank:
        _freeze(model, rank)
    optimizer = keras.optimizers.AdamW(5e-5, weight_decay=0.01, global_clipnorm=1.0)
    model.compile(optimizer=optimizer, loss=from_logits())
    return model


def _freeze(model, rank):
    for layer in model.layers:
        if isinstance(layer, layers.MultiHeadAttention):
            layer._tracker.unlock()
            for name in ("_query_dense", "_value_dense"):
                wrapped = LowRank(getattr(layer, name), rank)
                wrapped.build((None, 128, 768))
                setattr(layer, name, wrapped)
            layer._tracker.lock()
    learning = [
        narrow
        for layer in model._flatten_layers()
        if isinstance(layer, LowRank)
        for narrow in (layer.down, layer.up)
    ]
    for layer in model._flatten_layers():
        if not list(layer._flatten_layers(include_self=False)) and layer not in learning:
            layer.trainable = False


def gpt2_full_128():
    """All weights train (keras.io, GPT-2 with LoRA)."""
    return gpt2_128()


def gpt2_lora_128():
    """Products of rank 4 train, on queries and values."""
    return gpt2_128(rank=4)


# ---------------------------------------------------------- the U-Net of Stable Diffusion 1.4


def _normed(x, width, kernel=3, epsilon=1e-5):
    x = layers.Activation("swish")(layers.GroupNormalization(32, epsilon=epsilon)(x))
    return layers.Conv2D(width, kernel, padding="same")(x)


def _timed_residual(x, time, width):
    y = _normed(x, width)
    shift = layers.Dense(width)(layers.Activation("swish")(time))
    y = _normed(layers.Add()([y, layers.Reshape((1, 1, width))(shift)]), width)
    return layers.Add()([x if x.shape[-1] == width else layers.Conv2D(width, 1)(x), y])


class CrossAttention(layers.Layer):
    """Attention with eight heads, without bias but for the result."""

    def __init__(self, width, **options):
        """Make the four projections."""
        super().__init__(**options)
        self.width = width
        self.query, self.key, self.value = (layers.Dense(width, use_bias=False) for _ in range(3))
        self.result = layers.Dense(width)

    def build(self, own_shape, other_shape):
        """Make the weights."""
        self.query.build(own_shape)
        self.key.build(other_shape)
        self.value.build(other_shape)
        self.result.build((*own_shape[:-1], self.width))

    def call(self, own, other):
        """Attend to ``other``."""
        heads = (8, self.width // 8)
        query, key, value = (
            ops.reshape(made, (-1, made.shape[1], *heads))
            for made in (self.query(own), self.key(other), self.value(other))
        )
        score = ops.einsum("bqhd,bkhd->bhqk", query, key) * heads[1] ** -0.5
        mixed = ops.einsum("bhqk,bkhd->bqhd", ops.softmax(score), value)
        return self.result(ops.reshape(mixed, (-1, own.shape[1], self.width)))


def _spatial_transformer(x, words):
    rows, columns, width = x.shape[1:]
    y = layers.Conv2D(width, 1)(layers.GroupNormalization(32, epsilon=1e-6)(x))
    y = layers.Reshape((rows * columns, width))(y)
    own = zoo.norm(y, 1e-5)
    y = layers.Add()([y, CrossAttention(width)(own, own)])
    y = layers.Add()([y, CrossAttention(width)(zoo.norm(y, 1e-5), words)])
    wide = layers.Dense(8 * width)(zoo.norm(y, 1e-5))
    gate = layers.Activation("gelu")(wide[..., 4 * width :])
    y = layers.Add()([y, layers.Dense(width)(layers.Multiply()([wide[..., : 4 * width], gate]))])
    y = layers.Conv2D(width, 1)(layers.Reshape((rows, columns, width))(y))
    return layers.Add()([x, y])


def sd14_unet_64():
    """One look at latents of 64 x 64 with 77 words (keras.io, Stable Diffusion)."""
    latent, words = keras.Input((64, 64, 4)), keras.Input((77, 768))
    moment = keras.Input((320,))
    time = layers.Dense(1280)(layers.Dense(1280, activation="swish")(moment))
    x = layers.Conv2D(320, 3, padding="same")(latent)
    skips = [x]
    for level, width in enumerate((320, 640, 1280, 1280)):
        if level:
            x = layers.Conv2D(x.shape[-1], 3, 2, padding="same")(x)
            skips.append(x)
        for _ in range(2):
            x = _timed_residual(x, time, width)
            x = _spatial_transformer(x, words) if level < 3 else x
            skips.append(x)
    x = _spatial_transformer(_timed_residual(x, time, 1280), words)
    x = _timed_residual(x, time, 1280)
    for level, width in reversed(tuple(enumerate((320, 640, 1280, 1280)))):
        for _ in range(3):
            x = _timed_residual(layers.Concatenate()([x, skips.pop()]), time, width)
            x = _spatial_transformer(x, words) if level < 3 else x
        if level:
            x = layers.Conv2D(width, 3, padding="same")(layers.UpSampling2D()(x))
    return compiled([latent, moment, words], _normed(x, 4), zoo.adam(), "mse")
