"""The processes of a training with parameter servers; ``scheduled_step`` is what they train."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NoReturn

import tensorflow as tf

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.tensorflow_internals import session_config
from tfdyno.runtime.recipe.steps_under_way import unreachable

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Strategy

CLUSTER_S = 120.0
"""So long the chief waits for the workers and parameter servers to start."""
OFTEN_S = 0.5


def serve_forever() -> NoReturn:
    """Be the worker or parameter server that ``TF_CONFIG`` names, until the parent has ended.

    Raises:
        ToolError: The address cannot be served, as when its port is taken.
    """
    parent = os.getppid()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    role, number = resolver.task_type, resolver.task_id
    try:
        tf.distribute.Server(
            resolver.cluster_spec(), job_name=role, task_index=number, protocol="grpc",
            config=session_config(),  # threads and memory as the recipe has set them
        )  # fmt: skip
    except (tf.errors.OpError, RuntimeError) as error:
        address = resolver.cluster_spec().task_address(role, number)
        what = f"{role} {number} cannot serve {address}"
        raise ToolError(what, why=first_line(error), remedy="use a free port") from None
    while os.getppid() == parent:
        time.sleep(OFTEN_S)
    os._exit(0)  # TensorFlow's server cannot be stopped


def make_strategy(wait_s: float = CLUSTER_S) -> Strategy:
    """Return the strategy of the chief, from ``TF_CONFIG``, when all other processes answer.

    Args:
        wait_s: How long to wait for them.

    Raises:
        UsageError: The cluster has no worker or no parameter server.
        ToolError: A process does not answer, or the chief's own port is taken.
    """
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    spec = resolver.cluster_spec().as_dict()
    others = {role: spec.get(role, []) for role in ("worker", "ps")}
    for role, name in (("worker", "worker"), ("ps", "parameter server")):
        if not others[role]:
            raise UsageError(f"the cluster has no {name}", remedy=f"name one as '{role}'")
    until = time.monotonic() + wait_s
    while missing := unreachable(others):
        if time.monotonic() > until:
            what = f"the cluster is not complete after {wait_s:.0f} s"
            raise ToolError(what, why=f"no answer of {', '.join(missing)}",
                            remedy="see the logs of these processes")  # fmt: skip
        time.sleep(OFTEN_S)
    try:
        return tf.distribute.ParameterServerStrategy(resolver)
    except (tf.errors.OpError, RuntimeError) as error:
        raise ToolError("the chief cannot join the cluster", why=first_line(error)) from None
