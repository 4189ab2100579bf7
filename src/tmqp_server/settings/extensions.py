"""The settings that name users' classes: ``[handlers]`` and ``[custom_routers]``.

A class is written as ``"module:Class"``, or as a table with its arguments::

    [handlers]
    audited = "our.handlers:Audited"
    twice = { class = "our.handlers:Retry", arguments = { times = 2 } }

The module is imported as any other, so it must be installed or on ``PYTHONPATH``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from tmqp_server.settings.checks import ConfigError, known, table_of, text_of

__all__ = ["ClassSetting", "class_settings", "load", "load_object"]

_T = TypeVar("_T")


@attrs.frozen
class ClassSetting:
    """A class in the configuration, and its arguments.

    ``key`` is its key in the configuration, for messages.
    """

    key: str
    module: str
    name: str
    arguments: Mapping[str, Any]


def class_settings(table: object, key: str) -> dict[str, ClassSetting]:
    """Read a table of names and classes.

    :raises ConfigError: for a value that is neither form.
    """
    settings: dict[str, ClassSetting] = {}
    for name, value in table_of(table, key).items():
        place = f"{key}.{name}"
        parts = value if isinstance(value, dict) else {"class": value}
        known(parts, ("class", "arguments"), f"{place}.")
        arguments = table_of(parts.get("arguments", {}), f"{place}.arguments")
        text = text_of(parts.get("class"), place)
        module, colon, class_name = text.partition(":")
        if not (colon and module and class_name):
            raise ConfigError(f'{place} must be like "module:Class", got {text!r}')
        settings[name] = ClassSetting(place, module, class_name, arguments)
    return settings


def load_object(key: str, path: str) -> Any:
    """Load the object at ``module:attribute``.

    :param key: its key in the configuration.
    :raises ConfigError: when it does not exist, or its module cannot be imported.
    """
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"{key}: {path} cannot be imported: {error}") from error
    except Exception as error:
        raise ConfigError(f"{key}: {path} cannot be imported: {_told(error)}") from error
    if not hasattr(module, name):
        raise ConfigError(f"{key}: {path}: the module has no {name}")
    return getattr(module, name)


def load(setting: ClassSetting, kind: type[_T]) -> _T:
    """Import the class and make an object of it.

    :raises ConfigError: when that fails, or the object is not a *kind*; the text says why.
    """
    path = f"{setting.module}:{setting.name}"
    place = f"{setting.key}: {path}"
    maker = load_object(setting.key, path)
    if not callable(maker):
        raise ConfigError(f"{place} is not a class")
    try:
        made = maker(**setting.arguments)
    except Exception as error:
        raise ConfigError(f"{place} cannot be created: {_told(error)}") from error
    if not isinstance(made, kind):
        raise ConfigError(f"{place} makes a {type(made).__name__}, not a {kind.__name__}")
    return made


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
