"""Train a small network to read scanned digits, as any script does: nothing of tfdyno in it."""

import keras
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype("float32").reshape(-1, 8, 8, 1)
train_x, test_x, train_y, test_y = train_test_split(
    images, labels, test_size=357, random_state=0, stratify=labels
)

model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(10, activation="softmax", dtype="float32"),
    ]
)
model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train_x, train_y, batch_size=32, epochs=10, validation_data=(test_x, test_y))

loss, accuracy = model.evaluate(test_x, test_y, verbose=0)
print(f"On digits it has not seen: loss {loss:.3f}, accuracy {accuracy:.3f}")
model.save("digits.keras")
