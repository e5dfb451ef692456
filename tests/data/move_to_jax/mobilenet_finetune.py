"""Fine-tuning MobileNet, with its rescaling inside of the model."""

import keras
import numpy as np
from keras import layers

base = keras.applications.MobileNet(
    weights=None, include_top=False, input_shape=(32, 32, 3), alpha=0.25
)
inputs = keras.Input((32, 32, 3))
x = keras.applications.mobilenet.preprocess_input(inputs)
base.trainable = False
x = base(x, training=False)
x = layers.GlobalAveragePooling2D()(x)
model = keras.Model(inputs, layers.Dense(2)(layers.Dropout(0.2)(x)))
schedule = keras.optimizers.schedules.CosineDecay(1e-3, 10)
model.compile(
    keras.optimizers.Adam(schedule),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(np.random.rand(4, 32, 32, 3) * 255, np.array([0, 1, 0, 1]), batch_size=2, verbose=0)
model.save("mobilenet.keras")
print(keras.models.load_model("mobilenet.keras").count_params())
