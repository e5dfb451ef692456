"""Characters by a GRU; the lookup is done before the training."""

import tensorflow as tf

chars = list("abcdefgh ")
ids_from_chars = tf.keras.layers.StringLookup(vocabulary=chars, mask_token=None)
chars_from_ids = tf.keras.layers.StringLookup(
    vocabulary=ids_from_chars.get_vocabulary(), invert=True, mask_token=None
)
all_ids = ids_from_chars(tf.strings.unicode_split("abc def gh abc def gh abc", "UTF-8"))
ids_dataset = tf.data.Dataset.from_tensor_slices(all_ids)
sequences = ids_dataset.batch(6, drop_remainder=True)


def split_input_target(sequence):
    return sequence[:-1], sequence[1:]


dataset = sequences.map(split_input_target).batch(2, drop_remainder=True)


class MyModel(tf.keras.Model):
    def __init__(self, vocab_size, embedding_dim, rnn_units):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(vocab_size, embedding_dim)
        self.gru = tf.keras.layers.GRU(rnn_units, return_sequences=True, return_state=True)
        self.dense = tf.keras.layers.Dense(vocab_size)

    def call(self, inputs, states=None, return_state=False, training=False):
        x = self.embedding(inputs, training=training)
        if states is None:
            batch_size = tf.shape(x)[0]
            states = [tf.zeros((batch_size, self.gru.units))]
        x, states = self.gru(x, initial_state=states, training=training)
        x = self.dense(x, training=training)
        if return_state:
            return x, states
        return x


model = MyModel(10, 8, 8)
model.compile(optimizer="adam", loss=tf.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=1, verbose=0)
