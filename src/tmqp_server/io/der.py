"""Reads when a certificate expires; OpenSSL reads everything else.

Python's ``ssl`` reports the expiry only for a peer's certificate.  In X.509 (RFC 5280, 4.1), it
follows the version, if there is one, the serial number, the algorithm and the issuer.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

__all__ = ["expiry_of"]

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18

#: The largest length in one byte; larger values say how many bytes the length has.
_LONGEST_SHORT: Final = 127


def expiry_of(certificate: bytes) -> float:
    """Return when a certificate in DER expires, in Unix time.

    :raises ValueError: if it is not a certificate.
    """
    _, whole, _ = _value(certificate, 0, _SEQUENCE)
    _, body, _ = _value(whole, 0, _SEQUENCE)
    at = 0
    kind, _, after = _value(body, at)
    if kind == _VERSION:
        at = after
    for _ in range(3):
        at = _value(body, at)[2]
    _, validity, _ = _value(body, at, _SEQUENCE)
    at = _value(validity, 0)[2]
    kind, text, _ = _value(validity, at)
    form = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}.get(kind)
    if form is None:
        raise ValueError("not a certificate: the expiry date is missing")
    found = datetime.strptime(text.decode("ascii"), form).replace(tzinfo=UTC)
    return found.timestamp()


def _value(data: bytes, at: int, wanted: int | None = None) -> tuple[int, bytes, int]:
    """The kind of a value, its contents, and where the next one begins."""
    try:
        kind, size = data[at], data[at + 1]
        at += 2
        if size > _LONGEST_SHORT:
            count = size - _LONGEST_SHORT - 1
            size = int.from_bytes(data[at : at + count], "big")
            at += count
    except IndexError:
        raise ValueError("no certificate: it ends too early") from None
    if at + size > len(data) or (wanted is not None and kind != wanted):
        raise ValueError("no certificate: it is not in DER")
    return kind, data[at : at + size], at + size
