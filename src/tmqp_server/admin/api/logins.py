"""The sessions of browsers: a log-in turns a token into a cookie.

Theory of operation.  A cookie is 32 random bytes.  Here is only its digest, and the credentials
that the client has logged in with, enciphered with the cookie: the broker is shown them on every
connection of the client, so that what was taken from its access holds for its sessions, too.
A request with a cookie that changes something must prove that a page of this server has sent it:
by a header which only such a page can know, for it is derived from the cookie.
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
#: Sessions of one log-in's credentials, and of all; the oldest goes for a new one.
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
        """Whether it was not used for too long, or lasts for too long."""
        return now - self.used_s > _IDLE_S or now - self.opened_s > _LONGEST_S

    def ends_s(self) -> float:
        """When it is over if nothing is asked any more."""
        return min(self.used_s + _IDLE_S, self.opened_s + _LONGEST_S)

    def credentials(self, cookie: str) -> Credentials:
        """What its client has logged in with."""
        kind, secret, user = json.loads(_sealed(self._sealed, cookie))
        return Credentials(kind, secret, user)


def _plain(credentials: Credentials) -> bytes:
    return json.dumps([credentials.kind, credentials.secret, credentials.user]).encode()


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(b"cookie:" + cookie.encode()).digest()


def csrf_of(cookie: str) -> str:
    """What a page shows to prove that it belongs to the session of a cookie."""
    return hashlib.sha256(b"csrf:" + cookie.encode()).hexdigest()[:32]


def _sealed(data: bytes, cookie: str) -> bytes:
    """Encipher, or decipher: a cookie is used for one text only."""
    key = hashlib.shake_256(b"seal:" + cookie.encode()).digest(len(data))
    return bytes([one ^ other for one, other in zip(data, key, strict=True)])


@final
class WebLogIns:
    """All sessions of a server.

    :param random: makes so many random bytes.
    """

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random
        #: By digest, the one that was opened first comes first.
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
        """The session of a cookie, which is used now; None if there is none any more."""
        found = self._all.get(_digest(cookie))
        if found is None:
            return None
        if found.is_over(now):
            del self._all[found.digest]
            return None
        found.used_s = now
        return found

    def end(self, cookie: str) -> None:
        """The client logs out."""
        self._all.pop(_digest(cookie), None)

    def _end_those_over(self, now: float) -> None:
        for each in [each for each in self._all.values() if each.is_over(now)]:
            del self._all[each.digest]


def is_csrf(cookie: str, shown: bytes) -> bool:
    """Whether a page has shown what belongs to the session of a cookie."""
    return hmac.compare_digest(csrf_of(cookie).encode(), shown)
