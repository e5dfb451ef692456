"""A layout given to Keras: each weight is split when it is made, and what came of it is read."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import jax
import keras

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.train.layout import Layout, Placed, Rule, checked_axes, rule_for, shard_shape
from tfdyno.model.time.proposed_layout import proposed_axes, rules_of

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Value, Variable
    from tfdyno.core.train.device_mesh import Axes, DeviceMesh
    from tfdyno.core.train.jax_plan import JaxPlan


def distribution_of(plan: JaxPlan, mesh: DeviceMesh) -> Value:
    """Make Keras' distribution of a plan: a batch over all devices, or weights as well.

    Each process hands Keras whole batches, of which it keeps its own part (``data``), so that
    Keras shares out nothing.
    """
    devices = keras.distribution.DeviceMesh(mesh.sizes, list(mesh.names))
    if not plan.splits_weights:
        return keras.distribution.DataParallel(device_mesh=devices, auto_shard_dataset=False)
    return SplitWeights(mesh, devices, plan.rules)


class SplitWeights(keras.distribution.ModelParallel):
    """Splits a weight by the rule that its path matches, or as tfdyno proposes."""

    def __init__(self, mesh: DeviceMesh, devices: Value, rules: tuple[Rule, ...]) -> None:
        """Take the mesh, as tfdyno and as Keras has it, and the rules; none: a proposal."""
        super().__init__(
            layout_map=keras.distribution.LayoutMap(devices),
            batch_dim_name=mesh.data_name,
            auto_shard_dataset=False,
        )
        self.mesh, self.rules, self.is_proposed = mesh, rules, not rules

    def get_variable_layout(self, variable: Variable) -> Value:
        """Return a variable's layout as Keras makes it, those of optimizers included.

        A rule that does not fit is told when the weights of the model are known (``layout_of``).
        """
        if getattr(variable, "_layout", None) is not None:
            return variable._layout
        axes: Axes = ()
        with contextlib.suppress(UsageError):
            axes = self.axes_of(variable.path, tuple(variable.shape))[0]
        return keras.distribution.TensorLayout(
            [name or None for name in axes or ("",) * len(variable.shape)], self.device_mesh
        )

    def axes_of(self, path: str, shape: tuple[int, ...]) -> tuple[Axes, str]:
        """Return how a weight is split, and the pattern of the rule that says so.

        Raises:
            UsageError: Two rules match, or one does not fit its shape.
        """
        if self.is_proposed:
            name = self.mesh.model_names[0]
            axes = proposed_axes(path, shape, name, self.mesh.size(name))
            return (axes, path) if any(axes) else ((), "")
        rule = rule_for(path, self.rules)
        return (checked_axes(path, shape, rule, self.mesh), rule.pattern) if rule else ((), "")


def layout_of(model: Model, split: SplitWeights) -> Layout:
    """Return what became of the weights of a built model, as the devices hold them.

    Raises:
        UsageError: No rule matches any weight, or a rule does not fit one.
        ToolError: JAX holds a weight otherwise than the rules say.
    """
    weights = tuple(_placed(one, split) for one in model.weights)
    slots = model.optimizer.variables if getattr(model, "optimizer", None) else []
    named = weights
    if split.is_proposed:
        own = rules_of(weights)
        named = tuple(_named(one, own) for one in weights)
    used = {one.rule for one in named}
    idle = tuple(rule.pattern for rule in split.rules if rule.pattern not in used)
    if split.rules and len(idle) == len(split.rules):
        example = max(weights, key=lambda one: one.bytes).path if weights else "none"
        raise UsageError(
            "no rule of the layout matches a weight",
            why=f"a pattern has to match the whole path, and the largest weight is {example}",
            remedy="leave --layout out once: the rules that are proposed are kept in the run",
        )
    return Layout(
        mesh=split.mesh,
        weights=named,
        is_proposed=split.is_proposed,
        idle_rules=idle,
        slot_bytes=sum(_held_bytes(one) for one in slots),
        whole_slot_bytes=sum(int(one.value.nbytes) for one in slots),
    )


def rules_in(layout: Layout, split: SplitWeights) -> tuple[Rule, ...]:
    """Return the rules that make this layout."""
    return rules_of(layout.weights) if split.is_proposed else split.rules


def _placed(variable: Variable, split: SplitWeights) -> Placed:
    shape = tuple(int(length) for length in variable.shape)
    axes, rule = split.axes_of(variable.path, shape)
    found = _part(variable).shape
    expected = shard_shape(shape, axes, split.mesh)
    if tuple(found) != expected:
        what = f"JAX holds {tuple(found)} of {variable.path} on a device, not {expected}"
        remedy = "look for code that makes weights before fit in a scope of its own"
        raise ToolError(what, remedy=remedy)
    width_bytes = int(jax.numpy.dtype(variable.dtype).itemsize)
    return Placed(path=variable.path, shape=shape, width_bytes=width_bytes, axes=axes, rule=rule)


def _named(weight: Placed, rules: tuple[Rule, ...]) -> Placed:
    """Add the pattern of the proposal that is about it."""
    rule = rule_for(weight.path, rules)
    return replace(weight, rule=rule.pattern if rule else "")


def _part(variable: Variable) -> Value:
    """Return what the first device of this process holds.

    ``addressable_shards`` fails in JAX 0.10 for what ``device_put`` has copied to several processes
    of one device each.
    """
    return variable.value.addressable_data(0)


def _held_bytes(variable: Variable) -> int:
    return int(_part(variable).nbytes)
