"""Certificates of clients: their contents, and the patterns by which entries of ``[access]`` match
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import attrs

from tmqp_server.access.patterns import fits

__all__ = ["CertificatePatterns", "PeerCertificate", "read_peer_certificate", "subject_text"]

#: How the parts of a subject are written; others by their long names.
_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "userId": "UID",
}


@final
@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """A certificate that TLS has verified: the text of its ``subject``, as ``C=DE,O=Shop,CN=web-1``
    in the certificate's own order, its ``common_name``, the ``dns`` names and ``uris`` it is for,
    and its SHA-256 ``fingerprint``, 64 hexadecimal characters."""

    subject: str = ""
    common_name: str = ""
    dns: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    fingerprint: str = ""


def subject_text(subject: Any) -> str:
    """A subject as a line; commas, backslashes and equals signs in values are escaped with a
    backslash.
    """
    parts: list[str] = []
    for several in subject:
        for key, value in several:
            escaped = "".join("\\" + each if each in ",\\=+" else each for each in value)
            parts.append(f"{_SHORT.get(key, key)}={escaped}")
    return ",".join(parts)


def read_peer_certificate(shown: Mapping[str, Any], fingerprint: str) -> PeerCertificate:
    """Read what Python's ``ssl`` reports about a verified certificate."""
    subject = shown.get("subject", ())
    names = [value for part in subject for key, value in part if key == "commonName"]
    others = shown.get("subjectAltName", ())
    return PeerCertificate(
        subject_text(subject),
        names[0] if names else "",
        tuple(value for kind, value in others if kind == "DNS"),
        tuple(value for kind, value in others if kind == "URI"),
        fingerprint,
    )


@attrs.frozen
class CertificatePatterns:
    """Patterns for certificates: a certificate must have a matching value of each given kind."""

    subject: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    uri: tuple[str, ...] = ()
    fingerprint: tuple[str, ...] = ()

    def fits(self, shown: PeerCertificate) -> bool:
        """Whether a certificate matches."""
        found = (
            (self.subject, (shown.subject,), False),
            (self.dns, shown.dns, True),
            (self.uri, shown.uris, False),
            (self.fingerprint, (shown.fingerprint,), True),
        )
        return all(
            any(fits(each, patterns, any_case=any_case) for each in values)
            for patterns, values, any_case in found
            if patterns
        )
