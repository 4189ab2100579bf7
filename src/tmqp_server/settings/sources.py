"""The sources of settings: a file, the environment and options of the command, and their
precedence.

``TMQP_SERVER_SECTION__KEY`` is the key ``key`` of the table ``section``; two underscores lead to a
table within a table.  A value is written as in the file, or is a string.  If a name ends in
``_FILE``, its value is the path of a file with the actual value, so that no secret is in the
environment.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from tmqp_server.settings.checks import ConfigError

__all__ = ["PREFIX", "effective", "environment_table", "flattened", "hidden", "merged"]

PREFIX: Final = "TMQP_SERVER_"
_FILE: Final = "_FILE"
#: Keys whose values are secrets.
_SECRETS: Final = ("token", "password", "hash", "secret", "secret_key")
_BLANK: Final = "***"


def environment_table(
    environment: Mapping[str, str], read_file: Callable[[str], str]
) -> dict[str, Any]:
    """The settings in the environment, as the tables of a configuration file.

    :param read_file: reads the file of this name.
    :raises ConfigError: when two variables contradict each other.
    """
    table: dict[str, Any] = {}
    for name in sorted(environment):
        if not name.startswith(PREFIX):
            continue
        value = environment[name]
        key = name.removeprefix(PREFIX)
        if key.endswith(_FILE) and len(key) > len(_FILE):
            key = key.removesuffix(_FILE)
            value = read_file(value).rstrip("\r\n")
        path = key.lower().split("__")
        if not all(path):
            raise ConfigError(f"{name} is not a setting: write {PREFIX}KEY or {PREFIX}SECTION__KEY")
        place = table
        for part in path[:-1]:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise ConfigError(f"{name}: {part} has a value already, so it is not a table")
        if path[-1] in place:
            raise ConfigError(f"{name}: {'.'.join(path)} is given twice in the environment")
        place[path[-1]] = _value_of(value)
    return table


def _value_of(text: str) -> Any:
    """Read a value as TOML; if it is not TOML, it is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except tomllib.TOMLDecodeError:
        return text


def merged(table: Mapping[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables; if both have a value, that of *stronger* wins."""
    result = dict(table)
    for key, value in stronger.items():
        before = result.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            result[key] = merged(before, value)
        else:
            result[key] = value
    return result


def flattened(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a table and of its subtables, with dotted names."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
            for place, each in enumerate(value):
                yield from flattened(each, f"{prefix}{key}[{place}].")
        else:
            yield prefix + key, value


def hidden(name: str, value: Any) -> Any:
    """The value of a setting; asterisks if it is a secret."""
    return _BLANK if name.rpartition(".")[2] in _SECRETS else value


def effective(config: Any) -> list[tuple[str, object]]:
    """The settings of a configuration that have defaults, with their current values."""
    found: list[tuple[str, object]] = []
    for field in attrs.fields(type(config)):
        value = getattr(config, field.name)
        if field.name in ("access", "cluster", "channel", "queue", "replication"):
            continue
        if attrs.has(type(value)):
            names = [each.name for each in attrs.fields(type(value))]
        elif hasattr(type(value), "__dataclass_fields__"):
            names = list(type(value).__dataclass_fields__)
        elif isinstance(value, Mapping):
            continue
        else:
            if field.name not in ("channels", "routers", "doors"):
                found.append((field.name, value))
            continue
        for name in names:
            inner = getattr(value, name)
            if isinstance(inner, (bool, int, float, str, tuple)):
                found.append((f"{field.name}.{name}", inner))
    return found
