"""The settings of HTTP bindings, ``[http]``: which URLs may be called, with which limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tmqp_server.engine.routing.http_rules import HttpRules
from tmqp_server.settings.checks import ConfigError, positive, settings_of, texts_of, whole

__all__ = ["HttpSettings", "http_settings"]


def _prefixes(value: object) -> tuple[str, ...]:
    prefixes = texts_of(list(value) if isinstance(value, tuple) else value, "allow")
    try:
        HttpRules(prefixes)
    except ValueError as error:
        raise ConfigError(f"allow: {error}") from error
    return prefixes


@attrs.frozen(kw_only=True)
class HttpSettings:
    """The URLs that HTTP bindings may call, and the limits of calls."""

    allow: tuple[str, ...] = attrs.field(default=(), converter=_prefixes)
    """Prefixes of the URLs that may be called; if empty, HTTP bindings are refused with 501."""

    timeout_s: float = attrs.field(default=10.0, validator=positive)
    """Seconds after which an unanswered call has failed."""

    max_concurrent: int = attrs.field(default=16, validator=whole)
    """How many calls run at a time; further ones wait, which counts towards their timeout."""

    max_response_bytes: int = attrs.field(default=1_048_576, validator=whole)
    """The largest answer in bytes; a call with a larger one has failed."""


def http_settings(table: Mapping[str, Any]) -> HttpSettings:
    """Read ``[http]``.

    :raises ConfigError: for an unknown key or a bad value.
    """
    return settings_of(HttpSettings, table, "http")
