"""Owns the one switch between a compiled and an interpreted build: the ``mypyc_attr`` decorator.

``mypyc`` reads the decorator at build time and drops it; interpreted code needs something to call.
``mypy_extensions`` is a build dependency only, so nothing may import it at run time.
"""

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
