"""The templates of a package: an unknown name in one is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(package: str = "tfdyno.render", *, autoescape: bool = False) -> Environment:
    """Find the templates of a package under ``templates``.

    Args:
        package: Whose they are.
        autoescape: Whether they are HTML, so that all that is put into them is escaped.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
        autoescape=autoescape,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
