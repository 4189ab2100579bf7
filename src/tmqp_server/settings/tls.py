"""The settings of TLS, ``[tls]``: the server's certificate and its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tmqp_server.settings.checks import ConfigError, known

__all__ = ["TlsSettings", "tls_settings"]


def _file(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str) or "\0" in value:
        raise ConfigError(f"tls.{attribute.name} must be the name of a file, got {value!r}")


@attrs.frozen(kw_only=True)
class TlsSettings:
    """What the server shows to clients that connect by ``tmqs://``."""

    certificate: str = attrs.field(default="", validator=_file)
    """The file of its certificate, in PEM, the authorities' between behind it; empty for no TLS."""

    key: str = attrs.field(default="", validator=_file)
    """The file of its private key, in PEM, not encrypted; empty if the certificate's has it."""

    def __attrs_post_init__(self) -> None:
        if self.key and not self.certificate:
            raise ConfigError("tls.key is given without tls.certificate")


def tls_settings(table: Mapping[str, Any]) -> TlsSettings:
    """Read the table ``[tls]``.

    :raises ConfigError: for an unknown key or a bad value.
    """
    return TlsSettings(**known(table, [field.name for field in attrs.fields(TlsSettings)], "tls."))
