"""The settings of the log, ``[log]``: its level and its format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from tmqp_server.settings.checks import ConfigError, known

__all__ = ["FORMATS", "LEVELS", "LogSettings", "log_settings"]

#: The log levels, from most to least.
LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("plain", "json")


def _one_of(words: tuple[str, ...]) -> Any:
    def check(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if value not in words:
            known_words = ", ".join(repr(each) for each in words)
            raise ConfigError(f"{attribute.name} must be one of {known_words}; got {value!r}")

    return check


@attrs.frozen(kw_only=True)
class LogSettings:
    """How the log is written to standard error."""

    level: str = attrs.field(default="info", validator=_one_of(LEVELS))
    """The lowest level that is written: ``debug``, ``info``, ``warning`` or ``error``."""

    format: str = attrs.field(default="plain", validator=_one_of(FORMATS))
    """``plain`` for people, or ``json`` for one JSON object per line."""


def log_settings(table: Mapping[str, Any]) -> LogSettings:
    """Read ``[log]``.

    :raises ConfigError: for an unknown key or a bad value.
    """
    names = [field.name for field in attrs.fields(LogSettings)]
    try:
        return LogSettings(**known(table, names, "log."))
    except ConfigError as error:
        text = str(error)
        raise ConfigError(text if "log." in text else f"log: {text}") from error
