"""Names that only have a meaning for the compiler: ``mypyc_attr`` and ``i64``.

``mypyc`` reads them at build time; interpreted code needs something to call and to import.
``mypy_extensions`` is a build dependency only, so nothing may import it at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

__all__ = ["i64", "mypyc_attr"]

if TYPE_CHECKING:
    from mypy_extensions import i64 as i64
    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    #: An ``int`` the compiler keeps in a machine word: for offsets, sizes and flag bytes.
    i64 = int

    def mypyc_attr(*_names: str, **_values: object) -> Callable[[type], type]:
        """Return the class unchanged: the attributes only matter to the compiler."""
        return lambda decorated: decorated
