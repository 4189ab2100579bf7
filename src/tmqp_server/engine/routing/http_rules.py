"""Which URLs the server may call for its HTTP bindings (F120).

Clients create bindings over the network, and the server makes the calls: without a rule, a client
could reach everything that the server can reach (its loopback, a cloud's metadata).  So the server
calls only URLs that its configuration allows, by prefixes.

A URL is compared in parts and never as text: scheme, host and port must be equal, the path must
begin with that of the prefix, at the border of a segment.

A program at the URL may read the path in a different way: decode it twice, drop everything after a
semicolon or a zero byte, or drop trailing dots and blanks.  So a path may have only characters
without a special meaning, and an encoded character must be one of those, a letter, a digit or a
space; any other URL is refused.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_OK,
    RESULT_UNAUTHORIZED,
)

__all__ = ["MAX_URL_BYTES", "HttpRules"]

#: Bytes in the URL of an HTTP binding; a longer URL is answered with 400.
MAX_URL_BYTES: Final = 2_048

_NOT_IMPLEMENTED: Final = 501
_DEFAULT_PORTS: Final[dict[str, int]] = {"http": 80, "https": 443}
#: What a path may have beside letters and digits: plain, and encoded.
_PLAIN: Final = "-_~!$&'()*+,=:@.%"
_ENCODED: Final = "-_~!$&'()*+,=:@. "


_HEX: Final = "0123456789abcdefABCDEF"


class _Place:
    """The parts of a URL that are compared."""

    __slots__ = ("has_query", "host", "path", "port", "scheme")

    def __init__(self, scheme: str, host: str, port: int, path: str, has_query: bool) -> None:
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path
        self.has_query = has_query


def _parse(url: str) -> _Place | None:
    """The parts of *url*; None if it is not a plain http or https URL."""
    if not url.isascii() or len(url) > MAX_URL_BYTES:
        return None
    for character in url:
        if not "!" <= character <= "~" or character == "\\":
            return None
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname
    except ValueError:
        return None
    standard = _DEFAULT_PORTS.get(parts.scheme)
    if standard is None or not host or "@" in parts.netloc or "#" in url:
        return None
    path = parts.path or "/"
    for segment in path.split("/"):
        if segment and not _means_itself(segment):
            return None
    return _Place(parts.scheme, host, standard if port is None else port, path, "?" in url)


def _means_itself(segment: str) -> bool:
    """Whether every server reads a segment of a path, which is not empty, in the same way."""
    for character in segment:
        if not character.isalnum() and character not in _PLAIN:
            return False
    parts = segment.split("%")
    decoded = parts[0].encode("ascii")
    for part in parts[1:]:
        if len(part) < 2 or part[0] not in _HEX or part[1] not in _HEX:
            return False
        if part[:2].lower() == "2e":
            return False  # a dot has no reason to be encoded
        decoded += bytes([int(part[:2], 16)]) + part[2:].encode("ascii")
    try:
        text = decoded.decode("utf-8")
    except UnicodeDecodeError:
        return False
    for character in text:
        if not character.isalnum() and character not in _ENCODED:
            return False
    return text.strip(" .") != ""


class HttpRules:
    """The URLs that may be called: those under one of *prefixes*.

    :raises ValueError: if a prefix is not an http or https URL, or has a query.
    """

    __slots__ = ("_places",)

    def __init__(self, prefixes: tuple[str, ...]) -> None:
        self._places: list[_Place] = []
        for prefix in prefixes:
            place = _parse(prefix)
            if place is None or place.has_query:
                raise ValueError(
                    f"{prefix!r} is not a plain http or https URL without user, query and fragment"
                )
            self._places.append(place)

    def problem_of(self, url: str) -> int:
        """0 if *url* may be called; 501 if no URL may be called, 400 if it is not a URL, 401 if it
        may not be called."""
        if not self._places:
            return _NOT_IMPLEMENTED
        place = _parse(url)
        if place is None:
            return RESULT_BAD_REQUEST
        for allowed in self._places:
            if (
                place.scheme == allowed.scheme
                and place.host == allowed.host
                and place.port == allowed.port
                and _is_under(place.path, allowed.path)
            ):
                return RESULT_OK
        return RESULT_UNAUTHORIZED


def _is_under(path: str, prefix: str) -> bool:
    """Whether a path is the prefix or below it: ``/a/b`` is under ``/a``, ``/ab`` is not."""
    if path == prefix:
        return True
    return path.startswith(prefix if prefix.endswith("/") else prefix + "/")
