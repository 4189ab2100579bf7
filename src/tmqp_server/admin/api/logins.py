"""The sessions of browsers: a log-in exchanges a token for a cookie.

Theory of operation.  A cookie is 32 random bytes.  The server keeps only its digest, and the
credentials of the log-in, encrypted with the cookie.  Every connection of the client presents these
credentials to the broker, so a right that was revoked is revoked for the session, too. A request
with a cookie that changes something must prove that a page of this server has sent it: by a header
that only such a page can know, because it is derived from the cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, final

from tmqp_server.engine.commands import Credentials

__all__ = ["COOKIE_BYTES", "WebLogIn", "WebLogIns", "csrf_of", "is_csrf"]

COOKIE_BYTES: Final = 32
#: Seconds without a request, and from the log-in, after which a session is over.
_IDLE_S: Final = 1_800.0
_LONGEST_S: Final = 43_200.0
#: The most sessions with the same credentials, and of all; a new one replaces the oldest.
_MOST_OF_ONE: Final = 10
_MOST: Final = 1_000


@final
class WebLogIn:
    """One session; ``digest`` is that of its cookie, ``owner`` that of its credentials."""

    __slots__ = ("_sealed", "csrf", "digest", "opened_s", "owner", "used_s")

    def __init__(self, cookie: str, credentials: Credentials, now: float) -> None:
        plain = _plain(credentials)
        self.digest = _digest(cookie)
        self.owner = hashlib.sha256(plain).digest()
        self.csrf = csrf_of(cookie)
        self.opened_s = self.used_s = now
        self._sealed = _sealed(plain, cookie)

    def is_over(self, now: float) -> bool:
        """Whether the session was idle for too long, or has reached its longest duration."""
        return now - self.used_s > _IDLE_S or now - self.opened_s > _LONGEST_S

    def ends_s(self) -> float:
        """When the session ends if there are no more requests."""
        return min(self.used_s + _IDLE_S, self.opened_s + _LONGEST_S)

    def credentials(self, cookie: str) -> Credentials:
        """The credentials with which the client has logged in."""
        kind, secret, user = json.loads(_sealed(self._sealed, cookie))
        return Credentials(kind, secret, user)


def _plain(credentials: Credentials) -> bytes:
    return json.dumps([credentials.kind, credentials.secret, credentials.user]).encode()


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(b"cookie:" + cookie.encode()).digest()


def csrf_of(cookie: str) -> str:
    """The value by which a page proves that it belongs to the session of a cookie."""
    return hashlib.sha256(b"csrf:" + cookie.encode()).hexdigest()[:32]


def _sealed(data: bytes, cookie: str) -> bytes:
    """Encrypt or decrypt; each cookie encrypts only one text."""
    key = hashlib.shake_256(b"seal:" + cookie.encode()).digest(len(data))
    return bytes([one ^ other for one, other in zip(data, key, strict=True)])


@final
class WebLogIns:
    """All sessions of a server.

    :param random: returns a number of random bytes.
    """

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random
        #: By digest, in the order in which they were opened.
        self._all: OrderedDict[bytes, WebLogIn] = OrderedDict()

    def __len__(self) -> int:
        return len(self._all)

    def open(self, credentials: Credentials, now: float) -> tuple[str, WebLogIn]:
        """Begin a session; returns its cookie."""
        self._end_those_over(now)
        cookie = self._random(COOKIE_BYTES).hex()
        found = WebLogIn(cookie, credentials, now)
        own = [each for each in self._all.values() if each.owner == found.owner]
        if len(own) >= _MOST_OF_ONE:
            del self._all[own[0].digest]
        if len(self._all) >= _MOST:
            self._all.popitem(last=False)
        self._all[found.digest] = found
        return cookie, found

    def find(self, cookie: str, now: float) -> WebLogIn | None:
        """The session of a cookie, which counts as used now; None if it has ended."""
        found = self._all.get(_digest(cookie))
        if found is None:
            return None
        if found.is_over(now):
            del self._all[found.digest]
            return None
        found.used_s = now
        return found

    def end(self, cookie: str) -> None:
        """End the session, if there is one: the client logs out."""
        self._all.pop(_digest(cookie), None)

    def _end_those_over(self, now: float) -> None:
        for each in [each for each in self._all.values() if each.is_over(now)]:
            del self._all[each.digest]


def is_csrf(cookie: str, shown: bytes) -> bool:
    """Whether a page has shown the right value for the session of a cookie."""
    return hmac.compare_digest(csrf_of(cookie).encode(), shown)
