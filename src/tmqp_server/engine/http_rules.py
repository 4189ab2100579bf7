"""Owns which URLs the server may call for its HTTP bindings (F120).

A binding is made over the network, and a call goes out from the server: without a rule any client
could have the server reach what only the server can (its own loopback, a cloud's metadata).  So
nothing may be called unless the server's configuration allows it, by prefixes of URLs.

A URL is compared in parts and never as text: scheme, host and port must be equal, the path must
begin with the prefix's at the border of a segment.  What could be read in two ways (a user part, a
backslash, a dot segment, an encoded slash) is no URL here.
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

#: Bytes in the URL of an HTTP binding; a longer one is answered with 400.
MAX_URL_BYTES: Final = 2_048

_NOT_IMPLEMENTED: Final = 501
_DEFAULT_PORTS: Final[dict[str, int]] = {"http": 80, "https": 443}
#: Encoded dots and slashes: some servers read them as plain ones, some do not.
_AMBIGUOUS: Final = ("%2e", "%2f", "%5c")


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
    """The parts of *url*; None when it is no plain http or https URL."""
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
    lowered = path.lower()
    for marks in _AMBIGUOUS:
        if marks in lowered:
            return None
    for segment in path.split("/"):
        if segment == "." or segment == "..":
            return None
    return _Place(parts.scheme, host, standard if port is None else port, path, "?" in url)


class HttpRules:
    """The URLs that may be called: those under one of *prefixes*.

    :raises ValueError: for a prefix that is no http or https URL, or has a query.
    """

    __slots__ = ("_places",)

    def __init__(self, prefixes: tuple[str, ...]) -> None:
        self._places: list[_Place] = []
        for prefix in prefixes:
            place = _parse(prefix)
            if place is None or place.has_query:
                raise ValueError(
                    f"{prefix!r} is no plain http or https URL without user, query and fragment"
                )
            self._places.append(place)

    def problem_of(self, url: str) -> int:
        """0 when *url* may be called; 501 if none may, 400 if it is no URL, 401 if it may not."""
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
