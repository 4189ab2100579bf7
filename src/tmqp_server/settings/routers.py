"""The settings of routers: ``[[routers]]`` with their bindings, created at the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from tmqp.constants import (
    MAX_QUEUE_ID,
    BindingHttpMethod,
    BindingInteraction,
    BindingType,
    RouteMethod,
)
from tmqp_server.engine.options import BindingOptions
from tmqp_server.settings.checks import (
    ConfigError,
    flag_of,
    known,
    number_of,
    tables_of,
    text_of,
    word_of,
)

__all__ = [
    "BINDING_KEYS",
    "ROUTE_METHODS",
    "DeclaredRouter",
    "binding_of",
    "declared_routers",
    "values_of_binding",
    "word_of_number",
]

#: How a router picks receivers, by its word.
ROUTE_METHODS: Final = {
    method.name.lower().replace("_", "-"): int(method) for method in RouteMethod
}
_KINDS: Final = {kind.name.lower(): int(kind) for kind in BindingType}
_INTERACTIONS: Final = {asks.name.lower(): int(asks) for asks in BindingInteraction}
_HTTP_METHODS: Final = {method.name.lower(): int(method) for method in BindingHttpMethod}
_ROUTER_KEYS: Final = ("name", "method", "enabled", "bindings")
#: The keys that every kind of binding has, and those of some.
_BINDING_KEYS: Final = ("name", "kind", "target", "priority", "interaction")
_OWN_KEYS: Final[dict[int, tuple[str, ...]]] = {
    int(BindingType.DIRECT): ("content_type", "method"),
    int(BindingType.QUEUE): ("queue",),
    int(BindingType.HTTP): ("http_method",),
    int(BindingType.TAG): (),
}
#: The keys of a binding of any kind.
BINDING_KEYS: Final = tuple(
    dict.fromkeys((*_BINDING_KEYS, *(key for keys in _OWN_KEYS.values() for key in keys)))
)
_LARGEST: Final = 2_147_483_647


@attrs.frozen
class DeclaredRouter:
    """A router to create at the start, with its bindings."""

    name: str
    method: int
    enabled: bool
    bindings: tuple[BindingOptions, ...]


def declared_routers(tables: object) -> tuple[DeclaredRouter, ...]:
    """Read ``[[routers]]``.

    :raises ConfigError: for an unknown key, a bad value or a name that is declared twice.
    """
    routers: list[DeclaredRouter] = []
    for number, table in enumerate(tables_of(tables, "routers"), 1):
        values = known(table, _ROUTER_KEYS, f"routers[{number}].")
        name = text_of(values.get("name"), f"routers[{number}].name")
        if any(name == each.name for each in routers):
            raise ConfigError(f"routers: {name!r} is declared twice")
        prefix = f"routers.{name}."
        method = word_of(values.get("method", "distribute"), f"{prefix}method", ROUTE_METHODS)
        enabled = flag_of(values.get("enabled", True), f"{prefix}enabled")
        bindings: list[BindingOptions] = []
        for each in tables_of(values.get("bindings", []), f"{prefix}bindings"):
            binding = binding_of(each, f"{prefix}bindings.")
            if any(binding.name == other.name for other in bindings):
                raise ConfigError(f"{prefix}bindings: {binding.name!r} is declared twice")
            bindings.append(binding)
        routers.append(DeclaredRouter(name, method, enabled, tuple(bindings)))
    return tuple(routers)


def binding_of(table: Mapping[str, Any], prefix: str) -> BindingOptions:
    """Read a binding; *prefix* is the table's name and a dot.

    :raises ConfigError: for an unknown key or a bad value.
    """
    kind = word_of(table.get("kind"), f"{prefix}kind", _KINDS)
    values = known(table, (*_BINDING_KEYS, *_OWN_KEYS[kind]), prefix)
    content_type: int | None = None
    for key in ("content_type", "queue"):
        if key in values:
            content_type = number_of(values[key], prefix + key, 0, MAX_QUEUE_ID)
    if "http_method" in values:
        content_type = word_of(values["http_method"], f"{prefix}http_method", _HTTP_METHODS)
    return BindingOptions(
        text_of(values.get("name"), f"{prefix}name"),
        kind,
        text_of(values.get("target"), f"{prefix}target"),
        content_type,
        number_of(values.get("priority", 0), f"{prefix}priority", -_LARGEST, _LARGEST),
        word_of(values.get("interaction", "none"), f"{prefix}interaction", _INTERACTIONS),
        word_of(values.get("method", "distribute"), f"{prefix}method", ROUTE_METHODS),
    )


def word_of_number(words: Mapping[str, int], value: int) -> str | int:
    """The word for a number; the number itself if it has none."""
    return next((word for word, each in words.items() if each == value), value)


def values_of_binding(binding: BindingOptions) -> dict[str, object]:
    """A binding as :func:`binding_of` reads it."""
    kind = binding.kind
    found: dict[str, object] = {
        "name": binding.name,
        "kind": word_of_number(_KINDS, kind),
        "target": binding.target,
        "priority": binding.priority,
        "interaction": word_of_number(_INTERACTIONS, binding.interaction),
    }
    own = _OWN_KEYS.get(kind, ())
    if "method" in own:
        found["method"] = word_of_number(ROUTE_METHODS, binding.method)
    if binding.content_type is not None:
        for key in ("content_type", "queue"):
            if key in own:
                found[key] = binding.content_type
        if "http_method" in own:
            found["http_method"] = word_of_number(_HTTP_METHODS, binding.content_type)
    return found
