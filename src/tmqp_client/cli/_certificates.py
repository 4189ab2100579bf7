"""Looks at the certificate that a server shows: whether it is trusted, and until when."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import Any, Final

import anyio
from anyio.streams.tls import TLSAttribute

from tmqp.address import Address

__all__ = ["Certificate", "CertificateError", "look_at"]

_DAY_S: Final = 86_400


class CertificateError(Exception):
    """The certificate was not accepted, or there is none; the text says why."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that was accepted.

    ``days_left`` until it expires; ``names`` are those of its hosts; ``protocol`` is the version of
    TLS that was spoken.
    """

    days_left: float
    names: tuple[str, ...]
    issuer: str
    protocol: str


async def look_at(address: Address) -> Certificate:
    """Connect to a ``tmqs://`` address and read the server's certificate.

    The authorities are those of the system, or of the file that ``SSL_CERT_FILE`` names.

    :raises CertificateError: if it is not accepted.
    :raises OSError: if the connection fails.
    """
    try:
        stream = await anyio.connect_tcp(
            address.host,
            address.port,
            tls=True,
            ssl_context=ssl.create_default_context(),
            tls_hostname=address.host,
            tls_standard_compatible=False,
        )
    except ssl.SSLCertVerificationError as error:
        raise CertificateError(
            f"the certificate is not accepted: {error.verify_message} (SSL_CERT_FILE can name a"
            " file with the authorities that are trusted)"
        ) from error
    except (ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
        words = getattr(error, "reason", None) or "the connection ended"
        reason = str(words).lower().replace("_", " ")
        raise CertificateError(
            f"the handshake failed: {reason}; does this address speak TLS?"
        ) from error
    async with stream:
        tls = stream.extra(TLSAttribute.ssl_object)  # noqa: S610 - no Django
        found: dict[str, Any] = tls.getpeercert() or {}
        protocol = tls.version() or ""
    until_s = ssl.cert_time_to_seconds(found["notAfter"])
    issuer = {key: value for part in found.get("issuer", ()) for key, value in part}
    names = tuple(value for _, value in found.get("subjectAltName", ()))
    return Certificate(
        (until_s - time.time()) / _DAY_S,
        names,
        issuer.get("commonName") or issuer.get("organizationName") or "-",
        protocol,
    )
