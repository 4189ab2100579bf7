"""``mypyc_attr``, which only the compiler needs (see ``tmqp._compat``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

__all__ = ["mypyc_attr"]

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(*_names: str, **_values: object) -> Callable[[type], type]:
        """Return the class unchanged: the attributes only matter to the compiler."""
        return lambda decorated: decorated
