"""Knowledge: from facts, logs and source code to findings.

Others use ``agreement``, ``causes``, ``explain``, ``export``, ``keras_backend``, ``match``,
``told``, ``values``, ``wording``; the rest is private.
"""
