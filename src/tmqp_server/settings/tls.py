"""The settings of TLS, ``[tls]``: the server's certificate and its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from tmqp_server.settings.checks import ConfigError, known

__all__ = [
    "CLIENT_POLICIES",
    "NO_CERTIFICATE",
    "VERSIONS",
    "TlsSettings",
    "requires",
    "tls_settings",
]

#: The certificates that clients must show: none; one if they have it; one that they must
#: have.  The last two are NSQ's words, which are the same here: every certificate is verified.
NO_CERTIFICATE: Final = "none"
_REQUEST: Final = "request"
_REQUIRED: Final = ("require", "require-verify")
#: Versions of TLS that can be the lowest.
VERSIONS: Final = ("1.2", "1.3")
_DAY_S: Final = 86_400
CLIENT_POLICIES: Final = (NO_CERTIFICATE, _REQUEST, *_REQUIRED)


def _file(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str) or "\0" in value:
        raise ConfigError(f"tls.{attribute.name} must be the name of a file, got {value!r}")


def _truth(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigError(f"tls.{attribute.name} is true or false, got {value!r}")


def _version(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value not in VERSIONS:
        raise ConfigError(f"tls.{attribute.name} is '1.2' or '1.3', got {value!r}")


def _seconds(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _DAY_S:
        raise ConfigError(f"tls.{attribute.name} is a number from 0 to {_DAY_S}, got {value!r}")


@attrs.frozen(kw_only=True)
class TlsSettings:
    """The settings of TLS, for ``tmqs://`` and other addresses with TLS."""

    certificate: str = attrs.field(default="", validator=_file)
    """The file of the server's certificate, in PEM, followed by the intermediate certificates;
    empty for no TLS."""

    key: str = attrs.field(default="", validator=_file)
    """The file of its private key, in PEM, not encrypted; empty if the certificate's file has the
    key."""

    client_authorities: str = attrs.field(default="", validator=_file)
    """The file of the authorities, in PEM, whose certificates clients may show; empty for none."""

    client_revocations: str = attrs.field(default="", validator=_file)
    """The file of these authorities' lists of revoked certificates, in PEM; empty for none."""

    require_client_certificate: bool = attrs.field(default=False, validator=_truth)
    """Whether a client must show a certificate."""

    minimum_version: str = attrs.field(default="1.2", validator=_version)
    """The lowest version of TLS that is accepted: ``1.2`` or ``1.3``."""

    ciphers: str = attrs.field(default="", validator=_file)
    """The ciphers of TLS 1.2 that are offered, by OpenSSL's names; empty for OpenSSL's choice.
    Those of TLS 1.3 are all secure, and cannot be chosen."""

    watch_interval_s: float = attrs.field(default=30.0, validator=_seconds)
    """Seconds between two checks whether the files have changed; 0 for no checks."""

    def __attrs_post_init__(self) -> None:
        for name in ("key", "client_authorities"):
            if getattr(self, name) and not self.certificate:
                raise ConfigError(f"tls.{name} is given without tls.certificate")
        if self.client_revocations and not self.client_authorities:
            raise ConfigError("tls.client_revocations needs tls.client_authorities")
        if self.require_client_certificate and not self.client_authorities:
            raise ConfigError("tls.require_client_certificate needs tls.client_authorities")

    @property
    def client_policy(self) -> str:
        """The policy for certificates of clients, for doors that have no policy of their own."""
        if self.require_client_certificate:
            return _REQUIRED[0]
        return _REQUEST if self.client_authorities else NO_CERTIFICATE


def requires(policy: str) -> bool:
    """Whether clients must show a certificate."""
    return policy in _REQUIRED


def tls_settings(table: Mapping[str, Any]) -> TlsSettings:
    """Read the table ``[tls]``.

    :raises ConfigError: for an unknown key or a bad value.
    """
    return TlsSettings(**known(table, [field.name for field in attrs.fields(TlsSettings)], "tls."))
