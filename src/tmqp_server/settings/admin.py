"""The settings of the admin door, ``[admin]``: a short form of a table in ``[[doors]]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tmqp_server.settings.checks import ConfigError, known
from tmqp_server.settings.doors import DoorSettings, door_settings

__all__ = ["ADMIN", "admin_settings"]

#: The name of its protocol.
ADMIN: Final = "admin"
#: Its options, which are keys of the table; see ``AdminOptions``.
_OPTIONS: Final = (
    "metrics_queues",
    "max_metrics_queues",
    "anonymous_metrics",
    "backups",
    "console",
    "exemplars",
    "hosts",
    "max_at_work",
    "max_waiting",
    "origins",
    "requests_per_s",
    "share",
)
_KEYS: Final = ("listen", "tls", "as", "allow", "limits", "tls_client_auth")


def admin_settings(table: Mapping[str, Any]) -> DoorSettings:
    """Read ``[admin]``.

    :raises ConfigError: for an unknown key or a bad value.
    """
    given = known(table, [*_OPTIONS, *_KEYS], "admin.")
    options = {key: given.pop(key) for key in _OPTIONS if key in given}
    for key, value in options.items():
        if isinstance(value, list):
            options[key] = tuple(value)
    try:
        (found,) = door_settings([{"protocol": ADMIN, **given, "options": options}])
    except ConfigError as error:
        raise ConfigError(str(error).replace("doors.", "admin.")) from error
    return found
