"""Train a classifier of photos: what a usual script of some 150 lines looks like.

The photos are made up, so that it runs anywhere: the folder of JPEG files is all that is missing.
"""

import argparse
import math
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers

AUTOTUNE = tf.data.AUTOTUNE
CLASSES = ("daisy", "dandelion", "rose", "sunflower", "tulip")
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def arguments():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=160, help="pixels of a side")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--photos", type=int, default=3200)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=2, help="epochs")
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--mixed", action="store_true", help="compute in 16 bits")
    parser.add_argument("--output", default="photos")
    return parser.parse_args()


# ---- data ----


def made_up(count, seed):
    """Return photos that a class gives its colour, and their classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(CLASSES), count)
    small = rng.integers(0, 255, (count, 12, 12, 3), dtype=np.uint8)
    small[..., 0] = (small[..., 0] // 2) + (labels * 25)[:, None, None]
    return small, labels.astype("int32")


def normalised(image):
    """Scale from bytes to what the network was designed for."""
    image = tf.cast(image, tf.float32) / 255.0
    return (image - tf.constant(MEAN)) / tf.constant(DEVIATION)


def augmented(image, size):
    """Mirror, cut and colour a photo at random."""
    image = tf.image.random_flip_left_right(image)
    image = tf.image.resize(image, (size + 16, size + 16))
    image = tf.image.random_crop(image, (size, size, 3))
    image = tf.image.random_brightness(image, 20.0)
    return tf.clip_by_value(image, 0.0, 255.0)


def pipeline(photos, labels, args, training):
    """Return batches of photos with one-hot classes."""
    dataset = tf.data.Dataset.from_tensor_slices((photos, labels))
    if training:
        dataset = dataset.shuffle(1024, seed=7)

    def prepared(image, label):
        if training:
            image = augmented(image, args.size)
        else:
            image = tf.image.resize(image, (args.size, args.size))
        return normalised(image), tf.one_hot(label, len(CLASSES))

    dataset = dataset.map(prepared, num_parallel_calls=AUTOTUNE)
    return dataset.batch(args.batch_size, drop_remainder=training).prefetch(AUTOTUNE)


# ---- model ----


class Attend(layers.Layer):
    """Weigh channels by what the whole photo shows (squeeze and excite)."""

    def __init__(self, ratio=8, **options):
        super().__init__(**options)
        self.ratio = ratio

    def build(self, shape):
        channels = shape[-1]
        self.squeeze = layers.Dense(max(8, channels // self.ratio), activation="relu")
        self.excite = layers.Dense(channels, activation="sigmoid")
        self.squeeze.build((shape[0], channels))
        self.excite.build((shape[0], max(8, channels // self.ratio)))

    def call(self, inputs):
        pooled = keras.ops.mean(inputs, axis=(1, 2))
        weights = self.excite(self.squeeze(pooled))
        return inputs * keras.ops.reshape(weights, (-1, 1, 1, inputs.shape[-1]))


def classifier(args):
    """Build MobileNetV2 with a head of our own."""
    inputs = keras.Input((args.size, args.size, 3))
    backbone = keras.applications.MobileNetV2(
        input_shape=(args.size, args.size, 3), include_top=False, weights=None
    )
    x = backbone(inputs)
    x = Attend(name="attend")(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(args.dropout)(x)
    x = layers.Dense(256, activation="swish")(x)
    outputs = layers.Dense(len(CLASSES), activation="softmax", dtype="float32")(x)
    return keras.Model(inputs, outputs, name="photos")


# ---- training ----


def learning_rate(args, steps):
    """Return a cosine that begins slowly."""
    return keras.optimizers.schedules.CosineDecay(
        args.rate / 10,
        decay_steps=(args.epochs - args.warm_up) * steps,
        warmup_target=args.rate,
        warmup_steps=args.warm_up * steps,
    )


class Told(keras.callbacks.Callback):
    """Print one line an epoch."""

    def on_epoch_end(self, epoch, logs=None):
        shown = ", ".join(f"{name} {value:.3f}" for name, value in (logs or {}).items())
        print(f"epoch {epoch + 1}: {shown}", flush=True)


def callbacks(args):
    return [
        keras.callbacks.ModelCheckpoint(Path(args.output, "best.keras"), save_best_only=True),
        keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True),
        keras.callbacks.CSVLogger(Path(args.output, "log.csv")),
        keras.callbacks.TerminateOnNaN(),
        Told(),
    ]


def main():
    args = arguments()
    Path(args.output).mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(7)
    if args.mixed:
        keras.mixed_precision.set_global_policy("mixed_float16")
    training = pipeline(*made_up(args.photos, seed=1), args, training=True)
    validation = pipeline(*made_up(args.photos // 8, seed=2), args, training=False)
    model = classifier(args)
    steps = math.ceil(args.photos / args.batch_size)
    model.compile(
        optimizer=keras.optimizers.AdamW(learning_rate(args, steps), weight_decay=1e-4),
        loss=keras.losses.CategoricalCrossentropy(label_smoothing=args.label_smoothing),
        metrics=["accuracy", keras.metrics.TopKCategoricalAccuracy(2, name="top_2")],
    )
    model.summary()
    model.fit(
        training,
        validation_data=validation,
        epochs=args.epochs,
        callbacks=callbacks(args),
        verbose=0,
    )
    scores = model.evaluate(validation, verbose=0, return_dict=True)
    print(", ".join(f"{name} {value:.3f}" for name, value in scores.items()))
    model.save(Path(args.output, "photos.keras"))


if __name__ == "__main__":
    main()
