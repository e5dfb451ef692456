"""The model that ``keras_hub:NAME`` means: of the catalogue, of a folder, or of a user's cache."""

from __future__ import annotations

import os

from tfdyno.catalog.presets import Preset, find_preset, once_loaded, presets
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import HUB_PREFIX
from tfdyno.probe.files.preset_folder import is_path, preset_folder, read_preset


def hub_preset(text: str) -> Preset:
    """Return the preset that a user names, with or without ``keras_hub:``.

    A name of the catalogue is that; a path is a folder that KerasHub saved; anything else is looked
    for where KerasHub keeps what it has loaded.

    Raises:
        UsageError: There is none, or its folder cannot be read.
    """
    name = text.removeprefix(HUB_PREFIX)
    if name in presets() and not is_path(name):
        return find_preset(name)
    folder = preset_folder(name, os.environ)
    if folder:
        saved = read_preset(folder)
        return Preset(
            name=name,
            family=saved.backbone.removesuffix("Backbone"),
            backbone=saved.backbone,
            config=saved.config,
            parameter_count=saved.parameter_count,
            sequence_length=saved.sequence_length or _longest(saved.backbone),
            source=saved.folder,
        )
    if "://" in name:
        what = f"{HUB_PREFIX}{name} is not on this machine"
        raise UsageError(what, remedy=once_loaded(name))
    return find_preset(name)


def _longest(backbone: str) -> int:
    """Return the most tokens of a model of the same class; 0: none is known, or it reads none.

    A rotary model's configuration names no length.
    """
    return max((one.sequence_length for one in presets().values() if one.backbone == backbone),
               default=0)  # fmt: skip
