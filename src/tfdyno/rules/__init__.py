"""Knowledge: from facts, logs and source code to findings.

Others use ``agreement``, ``causes``, ``explain``, ``export``, ``keras_backend``, ``match``,
``tensorflow_only``, ``told``, ``values``, ``wording``; the rest is private.
"""
