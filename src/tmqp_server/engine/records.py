"""``Record``: the small base class of everything that crosses the engine's border.

The representation of a record has all its fields, in order.  It is used to check determinism (two
runs of the same commands must print the same effects), so it must not differ between builds:
interpreted code finds the fields in ``__slots__``, compiled code, where the compiler has turned
slots into C struct members, among the type's descriptors.
"""

from __future__ import annotations

from types import GetSetDescriptorType
from typing import Final

from tmqp._compat import mypyc_attr

__all__ = ["Record", "field_names"]


#: The fields by class, once they were found.
_FOUND: Final[dict[type, tuple[str, ...]]] = {}


def field_names(kind: type) -> tuple[str, ...]:
    """The names of a record class's fields, inherited ones first, in the order of ``__slots__``."""
    found = _FOUND.get(kind)
    if found is None:
        found = _FOUND[kind] = tuple(_names_of(kind))
    return found


def _names_of(kind: type) -> list[str]:
    names: list[str] = []
    for each in reversed(kind.__mro__):
        slots: object = each.__dict__.get("__slots__")
        if isinstance(slots, tuple):
            names.extend(slots)
        elif slots is None:
            for name, value in each.__dict__.items():
                if isinstance(value, GetSetDescriptorType) and not name.startswith("__"):
                    names.append(name)
    return names


@mypyc_attr(acyclic=True)
class Record:
    """A value with named fields and a complete representation; compared by identity."""

    __slots__ = ()

    def __repr__(self) -> str:
        kind = type(self)
        parts = [f"{name}={getattr(self, name)!r}" for name in field_names(kind)]
        return f"{kind.__name__}({', '.join(parts)})"
