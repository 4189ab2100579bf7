"""The settings of the audit, ``[audit]``: where changes are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tmqp_server.settings.checks import ConfigError, known

__all__ = ["AuditSettings", "audit_settings"]


def _flag(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigError(f"audit.{attribute.name} is true or false, got {value!r}")


def _file(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str) or "\0" in value:
        raise ConfigError(f"audit.{attribute.name} must be the name of a file, got {value!r}")


@attrs.frozen(kw_only=True)
class AuditSettings:
    """Where to record requested changes; the last 1,000 records are always kept in memory."""

    enabled: bool = attrs.field(default=True, validator=_flag)
    """Whether changes are recorded."""

    file: str = attrs.field(default="", validator=_file)
    """A file to which a JSON object is appended for each change; empty for none.  It is created
    with mode 0600, and SIGHUP opens it again."""

    log: bool = attrs.field(default=False, validator=_flag)
    """Whether the log has a line for each change, by the logger ``tmqp_server.audit``."""

    required: bool = attrs.field(default=False, validator=_flag)
    """Refuse changes with 503 while the file cannot be written."""

    def __attrs_post_init__(self) -> None:
        if self.required and not (self.enabled and self.file):
            raise ConfigError("audit.required needs audit.file")


def audit_settings(table: Mapping[str, Any]) -> AuditSettings:
    """Read ``[audit]``.

    :raises ConfigError: for an unknown key or a bad value.
    """
    names = [field.name for field in attrs.fields(AuditSettings)]
    return AuditSettings(**known(table, names, "audit."))
