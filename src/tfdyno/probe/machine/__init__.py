"""The machine as facts.

Others use ``fingerprint``, ``interfaces``, ``limits``, ``machine``, ``record``, ``redact``,
``revision``, ``spot``, ``system``; the rest is private.
"""
