"""A model of KerasHub that stands on this machine: a folder of ``save_to_preset``, or a cache.

Only the configuration is read, never a weight and never code.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import read_json
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CONFIG = "config.json"
_PREPROCESSOR = "preprocessor.json"
_METADATA = "metadata.json"
_NOT_OF_THE_MODEL = ("name", "trainable", "dtype")
"""Arguments of every layer of Keras; the precision is what is asked for."""
_LENGTHS = ("max_sequence_length", "sequence_length")
HUGGING_FACE, KAGGLE = "hf://", "kaggle://"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPreset:
    """What a folder tells of its model."""

    folder: str
    backbone: str
    """A class of ``keras_hub.models``."""
    config: dict[str, object]
    """Its arguments."""
    parameter_count: int
    """0: the folder does not tell."""
    sequence_length: int
    """The most tokens that its configuration or its preprocessing names; 0: neither does."""


def preset_folder(name: str, environment: Mapping[str, str]) -> Path | None:
    """Return the folder that KerasHub would read for a preset, without a network; None: none is.

    Args:
        name: A path, ``hf://organisation/model``, ``kaggle://organisation/model/keras/variant``,
            or a variant of Keras' own.
        environment: Where the caches are moved to.
    """
    if name.startswith(HUGGING_FACE):
        return _newest(_of_hugging_face(name.removeprefix(HUGGING_FACE), environment))
    if name.startswith(KAGGLE):
        return _newest(_of_kaggle(name.removeprefix(KAGGLE), environment))
    if is_path(name):
        return Path(name).expanduser()
    own = [*_of_kaggle(f"keras/*/keras/{name}", environment)]
    return _newest(own or _of_hugging_face(f"keras/{name}", environment))


def is_path(name: str) -> bool:
    """Return whether a name is meant for a folder: it has a slash, or such a folder stands here."""
    return "://" not in name and ("/" in name or Path(name, CONFIG).is_file())


def read_preset(folder: Path) -> SavedPreset:
    """Read the configuration of a saved preset.

    Raises:
        UsageError: There is none, it is damaged, or it is not one that KerasHub builds from.
    """
    read = _json(folder / CONFIG)
    if read is None:
        remedy = "name a folder that save_to_preset of KerasHub has written"
        raise UsageError(f"there is no preset in {folder}", why=f"it has no {CONFIG}",
                         remedy=remedy)  # fmt: skip
    registered, config = str(read.get("registered_name", "")), read.get("config")
    if not registered.startswith("keras_hub>") or not isinstance(config, dict):
        kind = read.get("model_type")
        why = f"its {CONFIG} is that of Hugging Face's {kind}" if kind else f"its {CONFIG} is not"
        raise UsageError(
            f"{folder} holds no preset of KerasHub", why=why,
            remedy="load it with KerasHub once, and keep it: model.save_to_preset('folder')",
        )  # fmt: skip
    _refuse_quantized(folder, config.get("dtype"))
    metadata, preprocessor = _json(folder / _METADATA) or {}, _json(folder / _PREPROCESSOR) or {}
    given = preprocessor.get("config")
    lengths = (config, given if isinstance(given, dict) else {})
    found = (where.get(name) for where in lengths for name in _LENGTHS)
    return SavedPreset(
        folder=str(folder),
        backbone=registered.removeprefix("keras_hub>"),
        config={key: value for key, value in config.items() if key not in _NOT_OF_THE_MODEL},
        parameter_count=_whole(metadata.get("parameter_count")),
        sequence_length=next(filter(None, map(_whole, found)), 0),
    )


def _refuse_quantized(folder: Path, dtype: object) -> None:
    """Refuse weights that were saved rounded: what they were rounded from is asked for by name."""
    kind = dtype.get("class_name") if isinstance(dtype, dict) else None
    if kind not in (None, "DTypePolicy"):
        raise UsageError(
            f"{folder} holds weights that are quantized already", why=f"it was saved by a {kind}",
            remedy="name the preset that it was made from, with --quantize",
        )  # fmt: skip


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _json(path: Path) -> dict[str, Any] | None:
    """Return what a file holds; None: there is none; raises ``UsageError`` where it is damaged."""
    return read_json(path) if path.is_file() else None


def _of_kaggle(handle: str, environment: Mapping[str, str]) -> Iterable[Path]:
    """Return versions of a model that kagglehub has kept: ``models/HANDLE/VERSION``."""
    kept = environment.get("KAGGLEHUB_CACHE") or "~/.cache/kagglehub"
    return Path(kept).expanduser().glob(f"models/{handle}/*/{CONFIG}")


def _of_hugging_face(repository: str, environment: Mapping[str, str]) -> Iterable[Path]:
    """Return snapshots that huggingface_hub has kept: ``models--ORGANISATION--NAME/snapshots``."""
    home = environment.get("HF_HOME") or "~/.cache/huggingface"
    kept = environment.get("HF_HUB_CACHE") or f"{home}/hub"
    folder = f"models--{repository.replace('/', '--')}"
    return Path(kept).expanduser().glob(f"{folder}/snapshots/*/{CONFIG}")


def _newest(files: Iterable[Path]) -> Path | None:
    """Return the folder of the highest version, or what was written last."""
    found = [path.parent for path in files]
    if not found:
        return None
    return max(found, key=lambda one: (int(one.name) if one.name.isdigit() else 0, _age(one)))


def _age(folder: Path) -> float:
    return (folder / CONFIG).stat().st_mtime
