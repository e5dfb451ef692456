"""Knowledge: from facts, logs and source code to findings.

Others use ``agreement``, ``causes``, ``explain``, ``export``, ``match``, ``tensorflow_only``,
``told``, ``values``, ``wording``; the rest is private.
"""
