"""Checks that all sections of the configuration share, and the error that they raise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs

__all__ = [
    "ConfigError",
    "flag_of",
    "known",
    "number_of",
    "positive",
    "settings_of",
    "table_of",
    "tables_of",
    "text",
    "text_of",
    "texts_of",
    "whole",
    "word_of",
]


_Settings = TypeVar("_Settings", bound=attrs.AttrsInstance)


class ConfigError(Exception):
    """The configuration is invalid; the message names the key and the reason."""


def positive(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a field of an attrs class: a number above 0.

    :raises ConfigError: when it is not; the other checks here do the same.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ConfigError(f"{attribute.name} must be a positive number, got {value!r}")


def whole(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a field of an attrs class: a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not value > 0:
        raise ConfigError(f"{attribute.name} must be a positive whole number, got {value!r}")


def text(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a field of an attrs class: a string, which may be empty."""
    if not isinstance(value, str):
        raise ConfigError(f"{attribute.name} must be a string, got {value!r}")


def known(table: Mapping[str, Any], names: Iterable[str], prefix: str) -> dict[str, Any]:
    """Return the table after a check that all its keys are among *names*; *prefix* is its name and
    a dot.
    """
    names = list(names)
    for key in table:
        if key not in names:
            import difflib  # noqa: PLC0415 - for a configuration that is wrong

            near = difflib.get_close_matches(key, names, 1)
            hint = f"; did you mean {prefix}{near[0]}?" if near else ""
            raise ConfigError(f"unknown key {prefix}{key}{hint}")
    return dict(table)


def settings_of(kind: type[_Settings], table: Mapping[str, Any], section: str) -> _Settings:
    """Make the settings of a section: an object of an attrs class whose fields are the keys.

    :raises ConfigError: for an unknown or missing key, or a bad value.
    """
    fields = attrs.fields(kind)
    values = known(table, [field.name for field in fields], f"{section}.")
    for field in fields:
        if field.default is attrs.NOTHING and field.name not in values:
            raise ConfigError(f"{section}.{field.name} is missing")
    try:
        return kind(**values)
    except ConfigError as error:
        raise ConfigError(f"{section}: {error}") from error


def table_of(value: object, key: str) -> Mapping[str, Any]:
    """A table."""
    if not isinstance(value, dict):
        raise ConfigError(f"{key} must be a table: [{key}]")
    return value


def tables_of(value: object, key: str) -> list[Mapping[str, Any]]:
    """A list of tables."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ConfigError(f"{key} must be a list of tables: [[{key}]]")
    return value


def text_of(value: object, key: str) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{key} must be a string, got {value!r}")
    return value


def texts_of(value: object, key: str) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise ConfigError(f"{key} must be a list of strings, got {value!r}")
    return tuple(text_of(each, key) for each in value)


def flag_of(value: object, key: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ConfigError(f"{key} must be true or false, got {value!r}")
    return value


def number_of(value: object, key: str, least: int = 0, most: int | None = None) -> int:
    """A whole number from *least* to *most*."""
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not fits or (most is not None and isinstance(value, int) and value > most):
        bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"
        raise ConfigError(f"{key} must be a whole number {bounds}, got {value!r}")
    assert isinstance(value, int)
    return value


def word_of(value: object, key: str, words: Mapping[str, int]) -> int:
    """The number of a word, written in any case."""
    if isinstance(value, str) and value.lower() in words:
        return int(words[value.lower()])
    raise ConfigError(f"{key} must be one of {', '.join(words)}; got {value!r}")
