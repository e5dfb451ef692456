"""YAML of plain values: the library quotes what another reader would take for something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

WIDTH = 100


class Block(str):
    """A text of several lines that stands as lines."""

    __slots__ = ()


def yaml_text(*documents: dict[str, Any], head: tuple[str, ...] = ()) -> str:
    """Write documents under each other, keys in their order, with comments at the top.

    Args:
        documents: Dictionaries, lists, texts and numbers; entries that are None are left out.
        head: Lines of comment.
    """
    import yaml

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        """Knows ``Block``."""

    Dumper.add_representer(
        Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, "|")
    )
    plain = [without_none(document) for document in documents]
    text: str = yaml.dump_all(
        plain,
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=WIDTH,
        default_flow_style=False,
    )
    return "".join(f"# {line}\n" for line in head) + text


def without_none(value: Value) -> Value:
    """Return the same without entries that are None."""
    if isinstance(value, dict):
        return {key: without_none(one) for key, one in value.items() if one is not None}
    return [without_none(one) for one in value] if isinstance(value, list | tuple) else value
