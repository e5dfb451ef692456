"""The digits of scikit-learn: a folder of pictures per class to learn from, and rows to test on."""

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

LEARNED = 1400


def main(folder: Path) -> None:
    """Write pictures/CLASS/NUMBER.png and test.npz."""
    digits = load_digits()
    images = (digits.images * 255 / 16).round().astype("uint8")[..., None]
    for number, (image, digit) in enumerate(zip(images[:LEARNED], digits.target, strict=False)):
        place = folder / "pictures" / str(digit)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:04}.png").write_bytes(tf.io.encode_png(image).numpy())
    # The network sees three equal channels, as pictures are read.
    rows = np.repeat(images[LEARNED:], 3, axis=-1).astype("float32")
    np.savez(folder / "test.npz", x=rows, y=digits.target[LEARNED:], x_train=rows[:100])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    main(parser.parse_args().folder)
