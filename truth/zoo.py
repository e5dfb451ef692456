"""Keras 3 builders of the models in measurements.csv: one argument-free function per model and input.

``zoo.py:resnet50_224`` is a workload: it returns the compiled model that the published measurement trained
(or ran), with weights that are random and an input whose batch dimension is None. Nothing is downloaded and
nothing depends on the backend. ``zoo_models.csv`` says which function belongs to which measurement.

Layouts follow the measured code, not the original papers: ``resnet50_v1_*`` has its stride in the first 1x1
convolution (tf_cnn_benchmarks), the other ResNets in the 3x3 (torchvision, timm, NVIDIA "v1.5").
"""

import math

import keras
from keras import layers, ops

# ---------------------------------------------------------------------------------------------- batch normalisation


def one_pass_moments(layer, inputs, mask):
    """Mean and variance from the sums of x and of its square, which one pass over the data gives.

    All measured frameworks have batch normalisation as one operation whose statistics take one pass (cuDNN;
    XLA's BatchNormTraining, which it expands to these two sums). Keras 3 takes a second pass for the variance.
    """
    values = ops.cast(inputs, "float32")
    axes = layer._reduction_axes
    mean, mean_square = ops.mean(values, axes), ops.mean(ops.square(values), axes)
    return mean, mean_square - ops.square(mean)


layers.BatchNormalization._moments = (
    one_pass_moments  # of this file's models: it is loaded for them only
)

# ------------------------------------------------------------------------------------------------ optimizers, losses


def momentum():
    return keras.optimizers.SGD(0.1, momentum=0.9)


def adam():
    return keras.optimizers.Adam(2e-5)


class AdamOfBert(keras.optimizers.Adam):
    """Adam as google-research/bert writes it (optimization.py): every term an operation, every result a new tensor.

    ``m`` and ``v`` times their factors and the weights times their decay wait for no gradient, so TensorFlow's
    executor makes them at the start of a step and holds them to its end.
    """

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        next_m = ops.add(ops.multiply(0.9, m), ops.multiply(0.1, gradient))
        next_v = ops.add(ops.multiply(0.999, v), ops.multiply(0.001, ops.square(gradient)))
        update = ops.add(
            ops.divide(next_m, ops.add(ops.sqrt(next_v), 1e-6)), ops.multiply(0.01, variable)
        )
        variable.assign(ops.subtract(variable, ops.multiply(learning_rate, update)))
        m.assign(next_m)
        v.assign(next_v)


def adam_of_bert():
    return AdamOfBert(2e-5, global_clipnorm=1.0)


def adamw():
    return keras.optimizers.AdamW(1e-4)


def lamb():
    return keras.optimizers.Lamb(4e-4)


def plain_sgd():
    return keras.optimizers.SGD(0.01)


def compiled(inputs, outputs, optimizer=momentum, loss="sparse"):
    """A compiled model. ``sparse`` is cross-entropy from logits over the last axis with integer targets."""
    outputs = [
        layers.Activation("linear", dtype="float32")(x)
        for x in (outputs if isinstance(outputs, list) else [outputs])
    ]
    losses = [
        keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        if kind == "sparse"
        else keras.losses.Huber()
        for kind in (loss if isinstance(loss, list) else [loss] * len(outputs))
    ]
    model = keras.Model(inputs, outputs if len(outputs) > 1 else outputs[0])
    model.compile(optimizer=optimizer(), loss=losses if len(losses) > 1 else losses[0])
    return model


def register(namespace, name, build, **arguments):
    """Define the argument-free function ``name`` in a module's namespace."""

    def function():
        return build(**arguments)

    function.__name__ = function.__qualname__ = name
    function.__module__ = namespace["__name__"]
    function.__doc__ = (
        build.__name__ + "(" + ", ".join(f"{k}={v!r}" for k, v in arguments.items()) + ")"
    )
    namespace.setdefault("WORKLOADS", []).append(name)
    namespace[name] = function


# ----------------------------------------------------------------------------------------------------- convolutional


def conv(
    x,
    filters,
    kernel,
    stride=1,
    *,
    groups=1,
    act="relu",
    norm=True,
    padding="same",
    dilation=1,
    depthwise=False,
):
    """Convolution, batch normalisation, activation."""
    shared = dict(padding=padding, use_bias=not norm, dilation_rate=dilation)
    if depthwise:
        x = layers.DepthwiseConv2D(kernel, stride, **shared)(x)
    else:
        x = layers.Conv2D(filters, kernel, stride, groups=groups, **shared)(x)
    if norm:
        x = layers.BatchNormalization(epsilon=1e-5, momentum=0.9)(x)
    return layers.Activation(act)(x) if act else x


def squeeze_excite(x, reduced, gate="sigmoid", act="relu"):
    s = layers.GlobalAveragePooling2D(keepdims=True)(x)
    s = layers.Conv2D(reduced, 1, activation=act)(s)
    return layers.Multiply()([x, layers.Conv2D(x.shape[-1], 1, activation=gate)(s)])


def residual(
    x,
    width,
    out,
    stride=1,
    *,
    basic=False,
    groups=1,
    stride_first=False,
    se_reduction=0,
    dilation=1,
):
    """A ResNet block: two 3x3 (basic) or 1x1, 3x3, 1x1 (bottleneck)."""
    shortcut = x
    if stride > 1 or x.shape[-1] != out:
        shortcut = conv(x, out, 1, stride, act=None)
    if basic:
        y = conv(x, width, 3, stride, dilation=dilation)
        y = conv(y, out, 3, act=None, dilation=dilation)
    else:
        y = conv(x, width, 1, stride if stride_first else 1)
        y = conv(y, width, 3, 1 if stride_first else stride, groups=groups, dilation=dilation)
        y = conv(y, out, 1, act=None)
    if se_reduction:
        y = squeeze_excite(y, out // se_reduction)
    return layers.Activation("relu")(layers.Add()([y, shortcut]))


def resnet_features(
    x,
    depths,
    *,
    basic=False,
    groups=1,
    group_width=64,
    strides=(1, 2, 2, 2),
    dilations=(1, 1, 1, 1),
    deep_stem=False,
    **block,
):
    """The outputs of the stages of a ResNet."""
    if deep_stem:
        x = conv(conv(conv(x, 32, 3, 2), 32, 3), 64, 3)
    else:
        x = conv(x, 64, 7, 2)
    x = layers.MaxPooling2D(3, 2, "same")(x)
    stages = []
    for i, depth in enumerate(depths):
        width = (64 << i) if basic else (64 << i) * group_width * groups // 64
        out = (64 << i) * (1 if basic else 4)
        for j in range(depth):
            x = residual(
                x,
                width,
                out,
                strides[i] if j == 0 else 1,
                basic=basic,
                groups=groups,
                dilation=dilations[i],
                **block,
            )
        stages.append(x)
    return stages


def classifier(inputs, x, *, dropout=0.0, classes=1000, optimizer=momentum):
    if len(x.shape) == 4:
        x = layers.GlobalAveragePooling2D()(x)
    if dropout:
        x = layers.Dropout(dropout)(x)
    return compiled(inputs, layers.Dense(classes)(x), optimizer)


def resnet(size, depths, **options):
    inputs = keras.Input((size, size, 3))
    return classifier(inputs, resnet_features(inputs, depths, **options)[-1])


def vgg(size, depths, norm=False):
    x = inputs = keras.Input((size, size, 3))
    for filters, depth in zip((64, 128, 256, 512, 512), depths):
        for _ in range(depth):
            x = conv(x, filters, 3, norm=norm)
        x = layers.MaxPooling2D(2)(x)
    x = layers.Flatten()(x)
    for _ in range(2):
        x = layers.Dropout(0.5)(layers.Dense(4096, activation="relu")(x))
    return compiled(inputs, layers.Dense(1000)(x))


def alexnet(size):
    """The tf_cnn_benchmarks layout (one tower, no local response normalisation)."""
    x = inputs = keras.Input((size, size, 3))
    x = layers.MaxPooling2D(3, 2)(conv(x, 64, 11, 4, norm=False, padding="valid"))
    x = layers.MaxPooling2D(3, 2)(conv(x, 192, 5, norm=False))
    x = conv(conv(conv(x, 384, 3, norm=False), 384, 3, norm=False), 256, 3, norm=False)
    x = layers.Flatten()(layers.MaxPooling2D(3, 2)(x))
    for _ in range(2):
        x = layers.Dropout(0.5)(layers.Dense(4096, activation="relu")(x))
    return compiled(inputs, layers.Dense(1000)(x))


def inception4(size):
    """Inception-v4: stem, 4 A, reduction, 7 B, reduction, 3 C."""

    def join(*parts):
        return layers.Concatenate()(list(parts))

    def pooled(x, filters):
        return conv(layers.AveragePooling2D(3, 1, "same")(x), filters, 1)

    x = inputs = keras.Input((size, size, 3))
    x = conv(conv(conv(x, 32, 3, 2, padding="valid"), 32, 3, padding="valid"), 64, 3)
    x = join(layers.MaxPooling2D(3, 2)(x), conv(x, 96, 3, 2, padding="valid"))
    long = conv(conv(conv(x, 64, 1), 64, (1, 7)), 64, (7, 1))
    x = join(conv(conv(x, 64, 1), 96, 3, padding="valid"), conv(long, 96, 3, padding="valid"))
    x = join(conv(x, 192, 3, 2, padding="valid"), layers.MaxPooling2D(3, 2)(x))
    for _ in range(4):
        x = join(
            pooled(x, 96),
            conv(x, 96, 1),
            conv(conv(x, 64, 1), 96, 3),
            conv(conv(conv(x, 64, 1), 96, 3), 96, 3),
        )
    x = join(
        layers.MaxPooling2D(3, 2)(x),
        conv(x, 384, 3, 2, padding="valid"),
        conv(conv(conv(x, 192, 1), 224, 3), 256, 3, 2, padding="valid"),
    )
    for _ in range(7):
        long = conv(conv(conv(conv(x, 192, 1), 192, (1, 7)), 224, (7, 1)), 224, (1, 7))
        x = join(
            pooled(x, 128),
            conv(x, 384, 1),
            conv(conv(conv(x, 192, 1), 224, (1, 7)), 256, (7, 1)),
            conv(long, 256, (7, 1)),
        )
    x = join(
        layers.MaxPooling2D(3, 2)(x),
        conv(conv(x, 192, 1), 192, 3, 2, padding="valid"),
        conv(conv(conv(conv(x, 256, 1), 256, (1, 7)), 320, (7, 1)), 320, 3, 2, padding="valid"),
    )
    for _ in range(3):
        a, b = conv(x, 384, 1), conv(conv(conv(x, 384, 1), 448, (1, 3)), 512, (3, 1))
        x = join(
            pooled(x, 256),
            conv(x, 256, 1),
            conv(a, 256, (1, 3)),
            conv(a, 256, (3, 1)),
            conv(b, 256, (1, 3)),
            conv(b, 256, (3, 1)),
        )
    return classifier(inputs, x, dropout=0.2)


def regnet(size, depths, widths, group_width, se_ratio=0.0):
    x = inputs = keras.Input((size, size, 3))
    x = conv(x, 32, 3, 2)
    for depth, width in zip(depths, widths):
        for j in range(depth):
            stride, before, shortcut = (2 if j == 0 else 1), x.shape[-1], x
            if j == 0:
                shortcut = conv(x, width, 1, stride, act=None)
            y = conv(conv(x, width, 1), width, 3, stride, groups=width // min(group_width, width))
            if se_ratio:
                y = squeeze_excite(y, round(before * se_ratio))
            x = layers.Activation("relu")(layers.Add()([conv(y, width, 1, act=None), shortcut]))
    return classifier(inputs, x)


def mnasnet(size):
    """MnasNet-B1: inverted residuals without squeeze-and-excite."""
    x = inputs = keras.Input((size, size, 3))
    x = conv(conv(conv(x, 32, 3, 2), None, 3, depthwise=True), 16, 1, act=None)
    for filters, depth, stride, kernel, expand in (
        (24, 3, 2, 3, 3),
        (40, 3, 2, 5, 3),
        (80, 3, 2, 5, 6),
        (96, 2, 1, 3, 6),
        (192, 4, 2, 5, 6),
        (320, 1, 1, 3, 6),
    ):
        for j in range(depth):
            y = conv(x, x.shape[-1] * expand, 1)
            y = conv(
                conv(y, None, kernel, stride if j == 0 else 1, depthwise=True), filters, 1, act=None
            )
            x = layers.Add()([x, y]) if j else y
    return classifier(inputs, conv(x, 1280, 1), dropout=0.2)


def application(size, architecture, optimizer=momentum, **options):
    """A model of keras.applications with its logits as output."""
    model = getattr(keras.applications, architecture)(
        weights=None, input_shape=(size, size, 3), classifier_activation=None, **options
    )
    return compiled(model.inputs, model.outputs[0], optimizer)


# ------------------------------------------------------------------------------------------------------ transformers


class Position(layers.Layer):
    """Adds a learned vector to every position of (batch, length, width)."""

    def build(self, shape):
        self.table = self.add_weight(shape=(1, *shape[1:]), initializer="zeros", name="table")

    def call(self, x):
        return x + ops.cast(self.table, x.dtype)


class ClassToken(layers.Layer):
    """Puts a learned token before the sequence."""

    def build(self, shape):
        self.token = self.add_weight(shape=(1, 1, shape[-1]), initializer="zeros", name="token")

    def call(self, x):
        token = ops.broadcast_to(ops.cast(self.token, x.dtype), (ops.shape(x)[0], 1, x.shape[-1]))
        return ops.concatenate([token, x], axis=1)


class WindowAttention(layers.Layer):
    """Swin's attention inside (possibly shifted) windows with a relative position bias."""

    def __init__(self, heads, window, shift, **options):
        super().__init__(**options)
        self.heads, self.window, self.shift = heads, window, shift

    def build(self, shape):
        w, width = self.window, shape[-1]
        self.qkv, self.out = (
            layers.Dense(3 * width, dtype=self.dtype_policy),
            layers.Dense(width, dtype=self.dtype_policy),
        )
        self.qkv.build((None, w * w, width)), self.out.build((None, w * w, width))
        self.bias = self.add_weight(
            shape=((2 * w - 1) ** 2, self.heads), initializer="zeros", name="bias"
        )
        place = [(i, j) for i in range(w) for j in range(w)]
        self.index = [
            [(a - c + w - 1) * (2 * w - 1) + b - d + w - 1 for c, d in place] for a, b in place
        ]
        rows, columns = shape[1], shape[2]
        zone = lambda i, n: 0 if i < n - w else 1 if i < n - self.shift else 2  # noqa: E731
        zones = [
            [
                [3 * zone(a * w + i, rows) + zone(b * w + j, columns) for i, j in place]
                for b in range(columns // w)
            ]
            for a in range(rows // w)
        ]
        self.mask = (
            [[[0.0 if p == q else -100.0 for q in z] for p in z] for line in zones for z in line]
            if self.shift
            else None
        )

    def call(self, x):
        w, h, (_, rows, columns, width) = self.window, self.heads, x.shape
        if self.shift:
            x = ops.roll(x, (-self.shift, -self.shift), axis=(1, 2))
        x = ops.transpose(
            ops.reshape(x, (-1, rows // w, w, columns // w, w, width)), (0, 1, 3, 2, 4, 5)
        )
        qkv = ops.reshape(
            self.qkv(ops.reshape(x, (-1, w * w, width))), (-1, w * w, 3, h, width // h)
        )
        q, k, v = (qkv[:, :, i] for i in range(3))
        score = ops.einsum("bqhd,bkhd->bhqk", q * (width // h) ** -0.5, k)
        bias = ops.transpose(
            ops.take(self.bias, ops.convert_to_tensor(self.index), axis=0), (2, 0, 1)
        )
        score = score + ops.cast(bias, score.dtype)
        if self.mask:
            count = len(self.mask)
            score = (
                ops.reshape(score, (-1, count, h, w * w, w * w))
                + ops.cast(ops.convert_to_tensor(self.mask), score.dtype)[None, :, None]
            )
            score = ops.reshape(score, (-1, h, w * w, w * w))
        x = ops.einsum("bhqk,bkhd->bqhd", ops.softmax(score), v)
        x = self.out(ops.reshape(x, (-1, w * w, width)))
        x = ops.transpose(
            ops.reshape(x, (-1, rows // w, columns // w, w, w, width)), (0, 1, 3, 2, 4, 5)
        )
        x = ops.reshape(x, (-1, rows, columns, width))
        return ops.roll(x, (self.shift, self.shift), axis=(1, 2)) if self.shift else x


def norm(x, epsilon=1e-6):
    return layers.LayerNormalization(epsilon=epsilon)(x)


def mlp(x, hidden, act="gelu"):
    width = x.shape[-1]
    return layers.Dense(width)(layers.Dense(hidden, activation=act)(x))


def attention(x, heads, dropout=0.0, mask=None, causal=False):
    width = x.shape[-1]
    return layers.MultiHeadAttention(heads, width // heads, dropout=dropout)(
        x, x, attention_mask=mask, use_causal_mask=causal
    )


def pre_norm_block(x, heads, hidden, dropout=0.0, causal=False, act="gelu"):
    x = layers.Add()([x, attention(norm(x), heads, dropout, causal=causal)])
    return layers.Add()([x, mlp(norm(x), hidden, act)])


def vit(size, patch, width, depth, heads):
    inputs = keras.Input((size, size, 3))
    x = layers.Conv2D(width, patch, patch)(inputs)
    x = Position()(ClassToken()(layers.Reshape((-1, width))(x)))
    for _ in range(depth):
        x = pre_norm_block(x, heads, 4 * width)
    return classifier(inputs, norm(x)[:, 0])


def swin(size, width, depths, heads, window=7):
    inputs = keras.Input((size, size, 3))
    x = norm(layers.Conv2D(width, 4, 4)(inputs))
    for i, depth in enumerate(depths):
        if i:
            x = layers.Reshape((x.shape[1] // 2, 2, x.shape[2] // 2, 2, x.shape[3]))(x)
            x = layers.Reshape((x.shape[1], x.shape[3], 4 * x.shape[5]))(
                layers.Permute((1, 3, 2, 4, 5))(x)
            )
            x = layers.Dense(x.shape[-1] // 2, use_bias=False)(norm(x))
        for j in range(depth):
            shift = window // 2 if j % 2 and x.shape[1] > window else 0
            x = layers.Add()([x, WindowAttention(heads[i], window, shift)(norm(x))])
            x = layers.Add()([x, mlp(norm(x), 4 * x.shape[-1])])
    return classifier(inputs, norm(x))


def bert_encoder(seq, width, depth, heads, dropout=0.1, embedding=None, hidden=None):
    """Token, segment and mask inputs; a post-norm encoder. Returns (inputs, encoded, token embedding)."""
    inputs = [
        keras.Input((seq,), dtype="int32", name=n)
        for n in ("token_ids", "segment_ids", "padding_mask")
    ]
    tokens = layers.ReversibleEmbedding(30522, embedding or width, name="tokens")
    x = layers.Add()([tokens(inputs[0]), layers.Embedding(2, embedding or width)(inputs[1])])
    x = layers.Dropout(dropout)(norm(Position()(x), 1e-12))
    if embedding and embedding != width:
        x = layers.Dense(width)(x)
    mask = layers.Reshape((1, seq))(inputs[2])
    for _ in range(depth):
        x = norm(
            layers.Add()([x, layers.Dropout(dropout)(attention(x, heads, dropout, mask=mask))]),
            1e-12,
        )
        x = norm(layers.Add()([x, layers.Dropout(dropout)(mlp(x, hidden or 4 * width))]), 1e-12)
    return inputs, x, tokens


def masked_logits(x, tokens, positions, act="gelu"):
    """Logits over the vocabulary at the masked positions only."""
    x = layers.Lambda(
        lambda t: ops.take_along_axis(t[0], ops.expand_dims(t[1], -1), axis=1),
        output_shape=(positions.shape[1], x.shape[-1]),
    )([x, positions])
    return tokens(norm(layers.Dense(tokens.output_dim, activation=act)(x), 1e-12), reverse=True)


def bert(seq, task, width, depth, heads, optimizer=adam):
    """BERT for ``squad`` (two logits a token), ``classify`` (pooled, two classes) or ``pretrain``."""
    inputs, x, tokens = bert_encoder(seq, width, depth, heads)
    if task == "pretrain":
        positions = keras.Input((20 if seq <= 128 else 80,), dtype="int32", name="masked_positions")
        return compiled([*inputs, positions], masked_logits(x, tokens, positions), optimizer)
    if task == "classify":
        pooled = layers.Dropout(0.1)(layers.Dense(width, activation="tanh")(x[:, 0]))
        return compiled(inputs, layers.Dense(2)(pooled), optimizer)
    return compiled(inputs, layers.Permute((2, 1))(layers.Dense(2)(x)), optimizer)


def decoder(seq, width, depth, heads, vocabulary=50257, act="gelu", optimizer=plain_sgd):
    """A GPT-2-like language model with tied output embedding."""
    inputs = keras.Input((seq,), dtype="int32", name="token_ids")
    tokens = layers.ReversibleEmbedding(vocabulary, width)
    x = layers.Dropout(0.1)(Position()(tokens(inputs)))
    for _ in range(depth):
        x = pre_norm_block(x, heads, 4 * width, 0.1, causal=True, act=act)
    return compiled(inputs, tokens(norm(x), reverse=True), optimizer)


# ------------------------------------------------------------------------------------------- detection, segmentation


def ssd300(size):
    """SSD300 on ResNet-50 as in NVIDIA's PyTorch example: stage 3 keeps stride 1, five extra blocks, 8,732 anchors."""
    inputs = keras.Input((size, size, 3))
    x = resnet_features(inputs, (3, 4, 6), strides=(1, 2, 1))[-1]
    maps = [x]
    for middle, out, stride, padding in (
        (256, 512, 2, "same"),
        (256, 512, 2, "same"),
        (128, 256, 2, "same"),
        (128, 256, 1, "valid"),
        (128, 256, 1, "valid"),
    ):
        x = conv(conv(x, middle, 1), out, 3, stride, padding=padding)
        maps.append(x)
    classes, boxes = [], []
    for x, anchors in zip(maps, (4, 6, 6, 6, 4, 4)):
        classes.append(layers.Reshape((-1, 81))(layers.Conv2D(anchors * 81, 3, padding="same")(x)))
        boxes.append(layers.Reshape((-1, 4))(layers.Conv2D(anchors * 4, 3, padding="same")(x)))
    return compiled(
        inputs,
        [layers.Concatenate(axis=1)(classes), layers.Concatenate(axis=1)(boxes)],
        loss=["sparse", "huber"],
    )


def ssd_fpn(size):
    """SSD320 with ResNet-50 and a feature pyramid of five levels, four shared 256-wide convolutions in each head."""
    inputs = keras.Input((size, size, 3))
    c3, c4, c5 = resnet_features(inputs, (3, 4, 6, 3))[1:]
    p5 = layers.Conv2D(256, 1)(c5)
    p4 = layers.Add()([layers.Conv2D(256, 1)(c4), layers.UpSampling2D()(p5)])
    p3 = layers.Add()([layers.Conv2D(256, 1)(c3), layers.UpSampling2D()(p4)])
    p6 = conv(p5, 256, 3, 2)
    pyramid = [conv(p3, 256, 3), conv(p4, 256, 3), p5, p6, conv(p6, 256, 3, 2)]
    outputs = []
    for width in (91, 4):
        tower = [layers.Conv2D(256, 3, padding="same", use_bias=False) for _ in range(4)]
        final, parts = layers.Conv2D(6 * width, 3, padding="same"), []
        for x in pyramid:
            for layer in tower:
                x = layers.Activation("relu")(layers.BatchNormalization()(layer(x)))
            parts.append(layers.Reshape((-1, width))(final(x)))
        outputs.append(layers.Concatenate(axis=1)(parts))
    return compiled(inputs, outputs, loss=["sparse", "huber"])


def resized(x, shape):
    return layers.Resizing(shape[1], shape[2], interpolation="bilinear")(x)


def fcn_head(x, width, classes, convolutions=2):
    y = x
    for _ in range(convolutions):
        y = conv(y, width, 3)
    if convolutions > 1:
        y = conv(layers.Concatenate()([x, y]), width, 3)
    return layers.Conv2D(classes, 1)(layers.Dropout(0.1)(y))


def psp_head(x, width, classes):
    rows, columns = x.shape[1:3]
    parts = [x]
    for bins in (1, 2, 3, 6):
        bins_r, bins_c = min(bins, rows), min(bins, columns)
        y = layers.AveragePooling2D(
            (math.ceil(rows / bins_r), math.ceil(columns / bins_c)),
            (rows // bins_r, columns // bins_c),
        )(x)
        parts.append(resized(conv(y, width, 1), x.shape))
    return layers.Conv2D(classes, 1)(
        layers.Dropout(0.1)(conv(layers.Concatenate()(parts), width, 3))
    )


def aspp_head(x, width, classes, rates=(12, 24, 36)):
    parts = [
        resized(conv(layers.GlobalAveragePooling2D(keepdims=True)(x), width, 1), x.shape),
        conv(x, width, 1),
    ]
    parts += [conv(x, width, 3, dilation=r) for r in rates]
    return layers.Conv2D(classes, 1)(
        layers.Dropout(0.1)(conv(layers.Concatenate()(parts), width, 3))
    )


HEADS = {"fcn": fcn_head, "psp": psp_head, "aspp": aspp_head}


def segmentation(size, depths, head, columns=None, basic=False, output_stride=8, classes=19):
    """A dilated ResNet (three 3x3 convolutions as stem) with a head and an auxiliary head on stage 3 (MMSegmentation)."""
    inputs = keras.Input((size, columns or size, 3))
    strides = {8: (1, 2, 1, 1), 16: (1, 2, 2, 1), 32: (1, 2, 2, 2)}[output_stride]
    dilations = {8: (1, 1, 2, 4), 16: (1, 1, 1, 2), 32: (1, 1, 1, 1)}[output_stride]
    stages = resnet_features(
        inputs, depths, basic=basic, strides=strides, dilations=dilations, deep_stem=True
    )
    width = 128 if basic else 512
    main, auxiliary = (
        HEADS[head](stages[-1], width, classes),
        fcn_head(stages[-2], width // 2, classes, 1),
    )
    return compiled(inputs, [resized(main, inputs.shape), resized(auxiliary, inputs.shape)])


def unet_s5(size, head, columns=None, classes=None):
    """MMSegmentation's UNet-S5-D16 (five stages, batch normalisation) with a head on the last decoder stage."""
    classes = classes or (19 if columns else 2)
    x = inputs = keras.Input((size, columns or size, 3))
    skips = []
    for i in range(5):
        if i:
            x = layers.MaxPooling2D(2)(x)
        x = conv(conv(x, 64 << i, 3), 64 << i, 3)
        skips.append(x)
    for i in (3, 2, 1, 0):
        x = conv(layers.UpSampling2D(interpolation="bilinear")(x), 64 << i, 1)
        x = conv(conv(layers.Concatenate()([skips[i], x]), 64 << i, 3), 64 << i, 3)
        if i == 1:
            inner = x
    main = fcn_head(x, 64, classes, 1) if head == "fcn" else HEADS[head](x, 16, classes)
    return compiled(
        inputs,
        [resized(main, inputs.shape), resized(fcn_head(inner, 64, classes, 1), inputs.shape)],
    )


def unet(shape, filters, classes, act="leaky_relu", optimizer=adam):
    """A padded U-Net with instance normalisation and two convolutions a level, in two or three dimensions."""
    conv_nd, up_nd = (
        (layers.Conv2D, layers.Conv2DTranspose)
        if len(shape) == 3
        else (layers.Conv3D, layers.Conv3DTranspose)
    )

    def block(x, width, stride=1):
        for s in (stride, 1):
            x = layers.GroupNormalization(groups=-1)(
                conv_nd(width, 3, s, padding="same", use_bias=False)(x)
            )
            x = layers.Activation(act)(x)
        return x

    x = inputs = keras.Input(shape)
    skips = []
    for i, width in enumerate(filters):
        x = block(x, width, 2 if i else 1)
        skips.append(x)
    for width, skip in zip(filters[-2::-1], skips[-2::-1]):
        x = block(layers.Concatenate()([up_nd(width, 2, 2, padding="same")(x), skip]), width)
    return compiled(inputs, conv_nd(classes, 1)(x), optimizer)


# --------------------------------------------------------------------------------------------------------- workloads


def define(name, build, **arguments):
    register(globals(), name, build, **arguments)


def define_sizes(name, build, sizes, **arguments):
    for size in sizes:
        define(f"{name}_{size}", build, size=size, **arguments)


BASIC = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}
for _name, _depths in BASIC.items():
    define_sizes(_name, resnet, (160, 224, 288), depths=_depths, basic=True)
define_sizes("resnet50", resnet, (160, 176, 224, 288), depths=(3, 4, 6, 3))
define_sizes("resnet101", resnet, (160, 176, 224, 288), depths=(3, 4, 23, 3))
define_sizes("resnet152", resnet, (160, 176, 224, 288), depths=(3, 8, 36, 3))
define("resnet50_v1_224", resnet, size=224, depths=(3, 4, 6, 3), stride_first=True)
define("resnet152_v1_224", resnet, size=224, depths=(3, 8, 36, 3), stride_first=True)
define_sizes(
    "resnext50_32x4d", resnet, (160, 176, 224, 288), depths=(3, 4, 6, 3), groups=32, group_width=4
)
define_sizes("resnext101_32x8d", resnet, (176, 224), depths=(3, 4, 23, 3), groups=32, group_width=8)
define("resnext152_32x4d_224", resnet, size=224, depths=(3, 8, 36, 3), groups=32, group_width=4)
define(
    "se_resnext101_32x4d_224",
    resnet,
    size=224,
    depths=(3, 4, 23, 3),
    groups=32,
    group_width=4,
    se_reduction=16,
)
for _name, _depths in {
    "vgg11": (1, 1, 2, 2, 2),
    "vgg13": (2, 2, 2, 2, 2),
    "vgg16": (2, 2, 3, 3, 3),
}.items():
    define(_name + "_224", vgg, size=224, depths=_depths)
    define(_name + "_bn_224", vgg, size=224, depths=_depths, norm=True)
define("alexnet_227", alexnet, size=227)
define("inception4_299", inception4, size=299)
define("mnasnet_224", mnasnet, size=224)
for _name, _depths, _widths, _group in (
    ("002", (1, 1, 4, 7), (24, 56, 152, 368), 8),
    ("004", (1, 2, 7, 12), (32, 64, 160, 384), 16),
    ("006", (1, 3, 5, 7), (48, 96, 240, 528), 24),
    ("008", (1, 3, 7, 5), (64, 128, 288, 672), 16),
    ("016", (2, 4, 10, 2), (72, 168, 408, 912), 24),
    ("032", (2, 6, 15, 2), (96, 192, 432, 1008), 48),
    ("040", (2, 5, 14, 2), (80, 240, 560, 1360), 40),
    ("064", (2, 4, 10, 1), (168, 392, 784, 1624), 56),
    ("080", (2, 5, 15, 1), (80, 240, 720, 1920), 120),
    ("120", (2, 5, 11, 1), (224, 448, 896, 2240), 112),
    ("160", (2, 6, 13, 1), (256, 512, 896, 2048), 128),
    ("320", (2, 7, 13, 1), (336, 672, 1344, 2520), 168),
):
    define(
        f"regnetx_{_name}_224", regnet, size=224, depths=_depths, widths=_widths, group_width=_group
    )
for _name, _sizes in {
    "B0": (224, 256),
    "B1": (224, 240, 256, 288),
    "B2": (256, 260, 288),
    "B3": (288, 300, 320),
    "B5": (416, 448, 456),
    "B6": (528,),
    "B7": (600,),
}.items():
    define_sizes(
        "efficientnet_" + _name.lower(), application, _sizes, architecture="EfficientNet" + _name
    )
for _name, _sizes in {
    "B0": (192, 224),
    "B1": (192, 240),
    "B2": (208, 260),
    "B3": (240, 300),
    "S": (288, 300, 384),
    "L": (384, 480),
}.items():
    define_sizes(
        "efficientnetv2_" + _name.lower(),
        application,
        _sizes,
        architecture="EfficientNetV2" + _name,
        include_preprocessing=False,
    )
for _name, _sizes in {
    "Tiny": (224, 288, 384),
    "Small": (224, 288, 384),
    "Large": (224, 288, 384),
    "XLarge": (224, 288, 384),
}.items():
    define_sizes(
        "convnext_" + _name.lower(),
        application,
        _sizes,
        architecture="ConvNeXt" + _name,
        include_preprocessing=False,
    )
for _name, _alpha in {"050": 0.5, "100": 1.0, "140": 1.4}.items():
    define(
        f"mobilenetv2_{_name}_224", application, size=224, architecture="MobileNetV2", alpha=_alpha
    )
for _name, _alpha in {"075": 0.75, "100": 1.0}.items():
    define(
        f"tf_mobilenetv3_small_{_name}_224",
        application,
        size=224,
        architecture="MobileNetV3Small",
        alpha=_alpha,
        include_preprocessing=False,
    )
define_sizes("resnetv2_50", application, (224, 288), architecture="ResNet50V2")
define("inception_resnet_v2_299", application, size=299, architecture="InceptionResNetV2")
define("xception_299", application, size=299, architecture="Xception")
define("nasnetalarge_331", application, size=331, architecture="NASNetLarge")

for _name, _patch, _width, _depth, _heads, _sizes in (
    ("vit_tiny_patch16", 16, 192, 12, 3, (224, 384)),
    ("vit_small_patch16", 16, 384, 12, 6, (224, 384)),
    ("vit_small_patch32", 32, 384, 12, 6, (224, 384)),
    ("vit_base_patch16", 16, 768, 12, 12, (224, 384)),
    ("vit_base_patch32", 32, 768, 12, 12, (224, 384)),
    ("vit_huge_patch14", 14, 1280, 32, 16, (224,)),
):
    define_sizes(_name, vit, _sizes, patch=_patch, width=_width, depth=_depth, heads=_heads)
for _name, _width, _depths, _heads in (
    ("tiny", 96, (2, 2, 6, 2), (3, 6, 12, 24)),
    ("base", 128, (2, 2, 18, 2), (4, 8, 16, 32)),
    ("large", 192, (2, 2, 18, 2), (6, 12, 24, 48)),
):
    define(f"swin_{_name}_224", swin, size=224, width=_width, depths=_depths, heads=_heads)

BERT_BASE, BERT_LARGE = dict(width=768, depth=12, heads=12), dict(width=1024, depth=24, heads=16)
for _name, _size in (("bert_base", BERT_BASE), ("bert_large", BERT_LARGE)):
    for _seq in (128, 384, 512):
        define(f"{_name}_squad_seq{_seq}", bert, seq=_seq, task="squad", **_size)
    for _seq in (64, 128, 256, 320, 384, 512):  # the repository's own largest batches
        define(
            f"{_name}_finetune_seq{_seq}",
            bert,
            seq=_seq,
            task="squad",
            optimizer=adam_of_bert,
            **_size,
        )
for _seq in (128, 512):
    define(
        f"bert_base_classify_seq{_seq}",
        bert,
        seq=_seq,
        task="classify",
        optimizer=adamw,
        **BERT_BASE,
    )
    define(
        f"bert_large_pretrain_seq{_seq}",
        bert,
        seq=_seq,
        task="pretrain",
        optimizer=lamb,
        **BERT_LARGE,
    )
define("bert_large_classify_seq512", bert, seq=512, task="classify", optimizer=adamw, **BERT_LARGE)
define("bert_base_half_depth_seq512", bert, seq=512, task="classify", width=768, depth=6, heads=12)
define("gpt3_xl_seq2048", decoder, seq=2048, width=3072, depth=24, heads=24)
define("gpt3_27_seq2048", decoder, seq=2048, width=2560, depth=32, heads=32)
define(
    "opt_13_seq2048",
    decoder,
    seq=2048,
    width=2048,
    depth=24,
    heads=32,
    vocabulary=50272,
    act="relu",
)

define("ssd300_resnet50", ssd300, size=300)
define("ssd320_resnet50_fpn", ssd_fpn, size=320)
for _head in ("fcn", "psp"):
    for _name, _depths in (("r18", (2, 2, 2, 2)), ("r50", (3, 4, 6, 3)), ("r101", (3, 4, 23, 3))):
        define(
            f"{_head}_{_name}_d8_512x1024",
            segmentation,
            size=512,
            columns=1024,
            depths=_depths,
            head=_head,
            basic=_name == "r18",
        )
        define(
            f"{_head}_{_name}_d8_769",
            segmentation,
            size=769,
            depths=_depths,
            head=_head,
            basic=_name == "r18",
        )
define(
    "psp_r50_d32_512x1024",
    segmentation,
    size=512,
    columns=1024,
    depths=(3, 4, 6, 3),
    head="psp",
    output_stride=32,
)
for _head in ("psp", "aspp"):
    define_sizes(f"unet_s5_{_head}", unet_s5, (64, 128), head=_head)
define("nnunet_2d", unet, shape=(192, 160, 4), filters=(32, 64, 128, 256, 512, 512), classes=4)
define(
    "unet3d_128",
    unet,
    shape=(128, 128, 128, 4),
    filters=(32, 64, 128, 256, 320),
    classes=4,
    act="relu",
)
define(
    "unet3d_224",
    unet,
    shape=(224, 224, 160, 4),
    filters=(32, 64, 128, 256, 320),
    classes=4,
    act="relu",
)
