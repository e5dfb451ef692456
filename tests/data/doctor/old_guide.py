"""What guides of several years tell together; none of it runs any more."""

import tensorflow as tf

tf.keras.utils.set_memory_growth(True)
config = tf.ConfigProto()
config.gpu_options.allow_growth = True
