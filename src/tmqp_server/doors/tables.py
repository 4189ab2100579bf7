"""Reads a door's table of the configuration into records for its limits and options."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

__all__ = [
    "Numbers",
    "Option",
    "check_positive",
    "limits_from",
    "options_from",
    "record_of_options",
]


class _Dataclass(Protocol):
    """A record."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Numbers(tuple[float, ...]):
    """An option that is a list of numbers."""

    __slots__ = ()


_Record = TypeVar("_Record", bound=_Dataclass)
#: What an option can be.
Option: TypeAlias = bool | int | str | tuple[str, ...] | Numbers
_TYPES: Final[dict[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    str: "a string",
    tuple: "a list of strings",
    Numbers: "a list of numbers",
}


def check_positive(limits: _Dataclass) -> None:
    """Refuse a limits record in which a number is not positive.

    :raises ValueError: with the number's name.
    """
    for name in limits.__dataclass_fields__:
        value = getattr(limits, name)
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value!r}")


def limits_from(defaults: _Record, table: Mapping[str, Any]) -> _Record:
    """A copy of a limits record with the values of a configuration table.

    :raises ValueError: for an unknown name, or a value that cannot be used.
    """
    values = {name: getattr(defaults, name) for name in defaults.__dataclass_fields__}
    given: dict[str, Any] = {}
    for name, value in table.items():
        _check_known("limit", name, values)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        whole = isinstance(values[name], int)
        if not number or (whole and not isinstance(value, int)):
            raise ValueError(f"{name} must be a {'whole ' * whole}number, not {value!r}")
        given[name] = value
    return dataclasses.replace(defaults, **given)


def record_of_options(defaults: _Record, table: Mapping[str, Any]) -> _Record:
    """A copy of an options record with the values of a configuration table.

    :raises ValueError: for an unknown name, or a value that cannot be used.
    """
    values = {name: getattr(defaults, name) for name in defaults.__dataclass_fields__}
    return dataclasses.replace(defaults, **options_from(values, table))


def options_from(defaults: Mapping[str, Option], table: Mapping[str, Any]) -> dict[str, Option]:
    """The options of a door's table, with defaults for missing ones.

    :raises ValueError: for an unknown name, or a value of another type.
    """
    found = dict(defaults)
    for name, value in table.items():
        _check_known("option", name, defaults)
        kind = type(defaults[name])
        if not _is_of(kind, value):
            raise ValueError(f"{name} must be {_TYPES[kind]}, not {value!r}")
        if kind is Numbers:
            found[name] = Numbers([float(each) for each in value])
        else:
            found[name] = tuple(value) if kind is tuple else value
    return found


def _is_of(kind: type, value: object) -> bool:
    """Whether a value has the type of an option of this kind."""
    if kind not in (tuple, Numbers):
        return type(value) is kind
    if not isinstance(value, (list, tuple)):
        return False
    wanted = (str,) if kind is tuple else (int, float)
    return all([type(each) in wanted for each in value])


def _check_known(what: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that is unknown.

    :raises ValueError: with the most similar known name.
    """
    if name not in known:
        import difflib  # noqa: PLC0415 - for who asks for what is not there

        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"there is no {what} {name!r}{hint}")
