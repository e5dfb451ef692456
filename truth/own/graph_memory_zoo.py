"""Small models whose graph-mode memory was measured: argument-free functions, as in ``zoo.py``.

Most are models of ``zoo.py`` at a size that trains in seconds on a CPU; the others are kinds that
the published measurements lack. ``graph_memory_cases.csv`` says which is run how.
"""

import sys
from pathlib import Path

import keras
from keras import layers

sys.path.append(str(Path(__file__).parents[1]))
import zoo


def resnet18_96() -> keras.Model:
    """Residual network with batch normalisation."""
    return zoo.resnet(96, (2, 2, 2, 2), basic=True)


def resnet50_96() -> keras.Model:
    """Bottleneck residual network."""
    return zoo.resnet(96, (3, 4, 6, 3))


def vgg11_64() -> keras.Model:
    """Convolutions with biases, wide dense layers, dropout."""
    return zoo.vgg(64, (1, 1, 2, 2, 2))


def vgg13_bn_64() -> keras.Model:
    """The same with batch normalisation."""
    return zoo.vgg(64, (2, 2, 2, 2, 2), norm=True)


def mobilenetv2_96() -> keras.Model:
    """Inverted residuals, depthwise convolutions."""
    return zoo.application(96, "MobileNetV2", zoo.adam)


def mobilenetv3_small_96() -> keras.Model:
    """Depthwise convolutions, hard swish, squeeze-and-excite."""
    return zoo.application(96, "MobileNetV3Small", zoo.adam, include_preprocessing=False)


def efficientnet_b0_96() -> keras.Model:
    """Swish, squeeze-and-excite, stochastic depth."""
    return zoo.application(96, "EfficientNetB0")


def densenet121_64() -> keras.Model:
    """Every layer concatenates all before it."""
    return zoo.application(64, "DenseNet121")


def inception_v3_96() -> keras.Model:
    """Branches of unlike convolutions, average pooling."""
    return zoo.application(96, "InceptionV3")


def xception_96() -> keras.Model:
    """Separable convolutions."""
    return zoo.application(96, "Xception", zoo.adamw)


def convnext_tiny_64() -> keras.Model:
    """Depthwise 7x7, layer normalisation, GELU, layer scale."""
    return zoo.application(64, "ConvNeXtTiny", zoo.adamw, include_preprocessing=False)


def unet_96() -> keras.Model:
    """U-Net with instance normalisation and transposed convolutions."""
    return zoo.unet((96, 96, 3), (16, 32, 64, 128), 4)


def unet_s5_64() -> keras.Model:
    """U-Net with batch normalisation, bilinear resizing and an auxiliary head."""
    return zoo.unet_s5(64, "fcn")


def fcn_r18_64() -> keras.Model:
    """Dilated residual network with two segmentation heads."""
    return zoo.segmentation(64, (2, 2, 2, 2), "fcn", basic=True)


def vit_64() -> keras.Model:
    """Vision transformer."""
    return zoo.vit(64, 8, 192, 4, 3)


def swin_112() -> keras.Model:
    """Attention in shifted windows, a layer of the zoo's own."""
    return zoo.swin(112, 48, (2, 2), (3, 6))


def bert_mini() -> keras.Model:
    """Post-norm encoder with dropout and a mask, two logits a token."""
    return zoo.bert(64, "squad", 128, 3, 4)


def bert_mini_pretrain() -> keras.Model:
    """Encoder whose logits over the vocabulary share the embedding, LAMB."""
    return zoo.bert(64, "pretrain", 128, 2, 4, zoo.lamb)


def decoder_mini() -> keras.Model:
    """Pre-norm causal decoder with dropout and tied logits."""
    return zoo.decoder(128, 192, 3, 4, vocabulary=8000, optimizer=zoo.adam)


def seq2seq_mini() -> keras.Model:
    """Transformer with an encoder, a causal decoder and attention from one to the other."""
    width, heads, vocabulary = 128, 4, 4000
    source = keras.Input((48,), dtype="int32", name="source")
    target = keras.Input((48,), dtype="int32", name="target")
    x = zoo.Position()(layers.Embedding(vocabulary, width)(source))
    for _ in range(2):
        x = zoo.pre_norm_block(x, heads, 4 * width, 0.1)
    y = zoo.Position()(layers.Embedding(vocabulary, width)(target))
    for _ in range(2):
        y = layers.Add()([y, zoo.attention(zoo.norm(y), heads, 0.1, causal=True)])
        across = layers.MultiHeadAttention(heads, width // heads, dropout=0.1)
        y = layers.Add()([y, across(zoo.norm(y), x)])
        y = layers.Add()([y, zoo.mlp(zoo.norm(y), 4 * width)])
    return zoo.compiled([source, target], layers.Dense(vocabulary)(zoo.norm(y)), zoo.adam)


def lstm_text() -> keras.Model:
    """Two LSTMs over embedded words."""
    inputs = keras.Input((80,), dtype="int32")
    x = layers.Embedding(10000, 128)(inputs)
    x = layers.LSTM(128, return_sequences=True)(x)
    x = layers.LSTM(128)(x)
    return zoo.compiled(inputs, layers.Dense(10)(x), zoo.adam)


def gru_series() -> keras.Model:
    """A bidirectional GRU over a series, mean squared error."""
    inputs = keras.Input((96, 16))
    x = layers.Bidirectional(layers.GRU(96, return_sequences=True))(inputs)
    outputs = layers.Dense(1)(layers.GRU(64)(x))
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=keras.optimizers.RMSprop(1e-3), loss="mse")
    return model


def mlp_wide() -> keras.Model:
    """Dense layers with dropout and batch normalisation."""
    x = inputs = keras.Input((512,))
    for _ in range(4):
        x = layers.Activation("relu")(layers.BatchNormalization()(layers.Dense(1024)(x)))
        x = layers.Dropout(0.3)(x)
    return zoo.compiled(inputs, layers.Dense(100)(x), zoo.adam)


def recommender() -> keras.Model:
    """Embedding tables, their pairwise products and dense layers (DLRM)."""
    numbers = keras.Input((13,), name="numbers")
    tables = [keras.Input((), dtype="int32", name=f"table{i}") for i in range(12)]
    x = layers.Dense(32, activation="relu")(layers.Dense(256, activation="relu")(numbers))
    rows = [x, *(layers.Embedding(5000, 32)(table) for table in tables)]
    stacked = layers.Concatenate(axis=1)([layers.Reshape((1, 32))(row) for row in rows])
    products = layers.Flatten()(layers.Dot(axes=2)([stacked, stacked]))
    y = layers.Concatenate()([x, products])
    for width in (512, 256):
        y = layers.Dense(width, activation="relu")(y)
    model = keras.Model([numbers, *tables], layers.Dense(1, activation="sigmoid")(y))
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss="binary_crossentropy")
    return model


def autoencoder_64() -> keras.Model:
    """Strided convolutions down, transposed ones up, mean squared error."""
    x = inputs = keras.Input((64, 64, 3))
    for filters in (32, 64, 128):
        x = layers.Conv2D(filters, 3, 2, padding="same", activation="relu")(x)
    for filters in (64, 32, 16):
        x = layers.Conv2DTranspose(filters, 3, 2, padding="same", activation="relu")(x)
    model = keras.Model(inputs, layers.Conv2D(3, 3, padding="same", activation="sigmoid")(x))
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
    return model


def conv1d_audio() -> keras.Model:
    """One-dimensional convolutions with ELU and average pooling."""
    x = inputs = keras.Input((2048, 4))
    for filters in (32, 64, 128, 256):
        x = layers.Conv1D(filters, 9, padding="same", activation="elu")(x)
        x = layers.AveragePooling1D(4)(x)
    x = layers.Dropout(0.5)(layers.GlobalAveragePooling1D()(x))
    return zoo.compiled(inputs, layers.Dense(35)(x), zoo.adam)


def resnet50_v2_96() -> keras.Model:
    """Residual network with normalisation before the convolutions."""
    return zoo.application(96, "ResNet50V2", zoo.adam)


def efficientnetv2_b0_96() -> keras.Model:
    """Fused inverted residuals, swish."""
    return zoo.application(96, "EfficientNetV2B0", zoo.adamw, include_preprocessing=False)


def regnet_64() -> keras.Model:
    """Grouped convolutions with squeeze-and-excite."""
    return zoo.regnet(64, (1, 1, 3, 3), (24, 56, 152, 368), 8, se_ratio=0.25)


def alexnet_127() -> keras.Model:
    """Large windows, biases, wide dense layers."""
    return zoo.alexnet(127)


def ssd_fpn_128() -> keras.Model:
    """Detector with a feature pyramid, heads shared by its levels, two losses."""
    return zoo.ssd_fpn(128)


def deeplab_128() -> keras.Model:
    """Dilated residual network with pyramid pooling by dilation."""
    return zoo.segmentation(128, (1, 1, 1, 1), "aspp", basic=True)


def unet3d_32() -> keras.Model:
    """U-Net in three dimensions."""
    return zoo.unet((32, 32, 32, 2), (16, 32, 64), 3, act="relu")


def vit_large_patch() -> keras.Model:
    """Wider vision transformer on few tokens."""
    return zoo.vit(96, 16, 384, 3, 6)


def opt_mini() -> keras.Model:
    """Decoder with rectifiers, plain gradient descent."""
    return zoo.decoder(96, 256, 3, 4, vocabulary=12000, act="relu")


def bert_classify() -> keras.Model:
    """Encoder with a pooled output and AdamW."""
    return zoo.bert(96, "classify", 192, 2, 6, zoo.adamw)


def mixer_64() -> keras.Model:
    """MLP-Mixer: dense layers along tokens and along channels in turn."""
    inputs = keras.Input((64, 64, 3))
    x = layers.Reshape((64, 192))(layers.Conv2D(192, 8, 8)(inputs))
    for _ in range(4):
        y = layers.Permute((2, 1))(zoo.mlp(layers.Permute((2, 1))(zoo.norm(x)), 128))
        x = layers.Add()([x, y])
        x = layers.Add()([x, zoo.mlp(zoo.norm(x), 768)])
    x = layers.GlobalAveragePooling1D()(zoo.norm(x))
    return zoo.classifier(inputs, x, optimizer=zoo.adam)


def tabular() -> keras.Model:
    """Wide dense layers with SELU and penalties on the weights, a sigmoid output."""
    x = inputs = keras.Input((200,))
    for width in (1024, 1024, 512, 256):
        x = layers.Dense(width, activation="selu", kernel_regularizer="l2")(x)
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy")
    return model


def upscaler() -> keras.Model:
    """Image to image: residual blocks without normalisation, absolute error."""
    inputs = keras.Input((48, 48, 3))
    x = layers.Conv2D(48, 3, padding="same")(inputs)
    for _ in range(4):
        y = layers.Conv2D(48, 3, padding="same", activation="relu")(x)
        x = layers.Add()([x, layers.Conv2D(48, 3, padding="same")(y)])
    x = layers.Conv2DTranspose(48, 4, 2, padding="same", activation="leaky_relu")(x)
    model = keras.Model(inputs, layers.Conv2D(3, 3, padding="same")(x))
    model.compile(optimizer=keras.optimizers.Adam(1e-4), loss="mae")
    return model


def mobilenet_96() -> keras.Model:
    """Depthwise separable convolutions without residuals."""
    return zoo.application(96, "MobileNet")


def resnet34_64() -> keras.Model:
    """Residual network with plain blocks."""
    return zoo.resnet(64, (3, 4, 6, 3), basic=True)


def psp_r18_128() -> keras.Model:
    """Dilated residual network with pyramid pooling."""
    return zoo.segmentation(128, (2, 2, 2, 2), "psp", basic=True)


def bert_long() -> keras.Model:
    """Encoder on longer sequences."""
    return zoo.bert(192, "squad", 128, 2, 2)


def decoder_wide() -> keras.Model:
    """Wider decoder on short sequences, AdamW."""
    return zoo.decoder(64, 384, 2, 6, vocabulary=6000, optimizer=zoo.adamw)


def unet_plain_64() -> keras.Model:
    """Two-dimensional U-Net with instance normalisation and rectifiers."""
    return zoo.unet((64, 64, 1), (24, 48, 96), 2, act="relu", optimizer=zoo.momentum)
