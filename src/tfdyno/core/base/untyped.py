"""Names for what frameworks and libraries hand over, which has no types that could be checked.

Each is ``Any`` to a type checker; the name says to a reader what comes. The one place where a
signature may be so open.
"""

from typing import Any

Model = Any
"""A Keras model."""
Layer = Any
"""A Keras layer, or a model used as one."""
Optimizer = Any
Loss = Any
Variable = Any
"""A variable of Keras or TensorFlow."""
Tensor = Any
"""A tensor of TensorFlow or JAX, or an array of NumPy."""
Batch = Any
"""Tensors of one batch, in whatever structure the data has."""
Structure = Any
"""Tuples, lists and dictionaries of tensors."""
Spec = Any
"""What TensorFlow knows of a tensor before there is one, or a structure of such."""
Shape = Any
DType = Any
Dataset = Any
"""A ``tf.data.Dataset``, or whatever else ``fit`` takes as data."""
DataIterator = Any
Function = Any
"""A ``tf.function``, one of its concrete functions, or a method of Keras."""
Graph = Any
Operation = Any
"""A node of a graph."""
Strategy = Any
"""A ``tf.distribute.Strategy``."""
Logs = Any
"""Losses and metrics by name, as callbacks of Keras get them."""
Library = Any
"""A shared library, or a handle that one gave."""
Module = Any
"""An imported module."""
Instance = Any
"""``self`` of a method that stands in for one of another class."""
Value = Any
"""Anything: what a decoder reads, or what a call of the user's returns."""
