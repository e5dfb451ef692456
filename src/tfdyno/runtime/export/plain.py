"""A model of KerasHub as floats and without adapters: what other formats can hold of it.

KerasHub's converters read some weights where LoRA's part is not in them (Gemma's read the kernel
that was frozen), and whole numbers where weights are quantized: neither is the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.keras_internals import all_layers, float_weights, own_variables

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model

MODES = ("int8", "int4")
"""Of ``quantize``, whose weights can be made floats."""


def adapted_layers(model: Model) -> int:
    """Count layers with adapters of LoRA."""
    return sum(bool(getattr(one, "lora_enabled", False)) for one in all_layers(model))


def quantized_modes(model: Model) -> tuple[str, ...]:
    """Return the modes in which layers are quantized, sorted."""
    found = (getattr(one, "quantization_mode", None) for one in all_layers(model))
    return tuple(sorted({one for one in found if one}))


def check_modes(model: Model, title: str) -> None:
    """Raise ``UsageError`` where weights are quantized in a way that is not undone here."""
    if others := [one for one in quantized_modes(model) if one not in MODES]:
        raise UsageError(
            f"{title} cannot be exported to huggingface",
            why=f"its weights are quantized in {others[0]}, and those of {' and '.join(MODES)} "
            "alone are made floats again",
            remedy="export it as it was before quantize; a server can quantize it as it loads",
        )


def plain(model: Model) -> Model:
    """Return a copy whose weights are floats with the adapters in them.

    A model without adapters and quantized layers is returned as it is.
    """
    if not adapted_layers(model) and not quantized_modes(model):
        return model
    backbone = model.backbone
    copy = type(backbone).from_config({**backbone.get_config(), "dtype": float_policy(model)})
    for own, new in zip(all_layers(backbone), all_layers(copy), strict=True):
        _copy(own, new)
    return type(model)(backbone=copy, preprocessor=model.preprocessor)


def float_policy(model: Model) -> str:
    """Return the name of the policy that the model has where nothing of it is quantized."""
    policy = model.backbone.dtype_policy
    name = str(getattr(policy, "default_policy", policy).name)
    return name.rpartition("_from_")[2]


def _copy(own: Model, new: Model) -> None:
    is_changed = getattr(own, "lora_enabled", False) or getattr(own, "quantization_mode", None)
    known = {**own_variables(own), **(float_weights(own) if is_changed else {})}
    for name, variable in own_variables(new).items():
        variable.assign(known[name])
