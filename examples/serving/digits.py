"""A small network for the digits of scikit-learn, and what its export and its server are asked."""

import json
import sys
from pathlib import Path

import keras
import numpy as np
from sklearn.datasets import load_digits

TRAINED_ON = 1400


def main(folder: Path) -> None:
    """Write digits.keras, test.npz and request.json."""
    folder.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(0)
    digits = load_digits()
    x, y = digits.images[..., None].astype("float32") / 16.0, digits.target
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1), name="image"),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax", name="digit"),
        ],
        name="digits",
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x[:TRAINED_ON], y[:TRAINED_ON], batch_size=32, epochs=12, verbose=2)
    model.save(folder / "digits.keras")
    np.savez(folder / "test.npz", x=x[TRAINED_ON:], y=y[TRAINED_ON:], x_train=x[:TRAINED_ON])
    request = {"instances": x[TRAINED_ON : TRAINED_ON + 2].tolist()}
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    print(f"the two digits of request.json: {y[TRAINED_ON : TRAINED_ON + 2].tolist()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
