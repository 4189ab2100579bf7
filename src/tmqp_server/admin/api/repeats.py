"""``Idempotency-Key``: carries out a repeated request only once.

A client that does not know whether its POST was carried out sends it again with the same key, and
gets the answer of the first one.  Keys are kept for some time, separately for each client.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, final

from tmqp_server.doors.http.messages import BadRequest, HttpRequest, HttpResponse

__all__ = ["KEY", "Repeats", "name_in"]

KEY: Final = b"idempotency-key"
_FORM: Final = re.compile(rb'"?[!#-~]{1,128}"?')
#: Seconds for which an answer is kept, how many are, and the largest one.
_KEPT_S: Final = 600.0
_MOST: Final = 10_000
#: Seconds after which an unanswered request may be carried out again.
_UNANSWERED_S: Final = 60.0
_LARGEST: Final = 65_536


def name_in(request: HttpRequest) -> str:
    """The request's key, without quotation marks."""
    return (request.header(KEY) or b"").strip(b'"').decode("ascii")


@final
class _Kept:
    """One request; ``response`` is None until it has been answered."""

    __slots__ = ("at_s", "digest", "response")

    def __init__(self, digest: bytes, at_s: float) -> None:
        self.digest = digest
        self.at_s = at_s
        self.response: HttpResponse | None = None


@final
class Repeats:
    """The keyed requests of the last minutes, and their answers."""

    def __init__(self) -> None:
        self._all: OrderedDict[bytes, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._all)

    def meet(
        self, owner: bytes, request: HttpRequest, now: float
    ) -> HttpResponse | Callable[[HttpResponse], HttpResponse] | None:
        """Look up a request: the answer of its first execution; or, for a new key, a function to
        pass the answer through, which keeps it; None for a request without a key.

        :raises BadRequest: for a malformed key, and for one whose request was different or has not
            been answered yet.
        """
        key = request.header(KEY)
        if key is None or request.method != "POST":
            return None
        if not _FORM.fullmatch(key):
            raise BadRequest(400, "Idempotency-Key has 1 to 128 characters without blanks")
        self._forget(now)
        said = repr((request.path, sorted(request.query.items()))).encode()
        digest = hashlib.sha256(said + b"\0" + request.body).digest()
        name = hashlib.sha256(owner + key).digest()
        kept = self._all.get(name)
        if kept is not None and kept.response is None and now - kept.at_s > _UNANSWERED_S:
            kept = None  # its connection has ended: nobody will ever answer it
        if kept is None:
            kept = self._all[name] = _Kept(digest, now)
            if len(self._all) > _MOST:
                self._all.popitem(last=False)
            return lambda response: self._answered(name, response)
        if kept.digest != digest:
            raise BadRequest(409, "this Idempotency-Key belongs to another request")
        if kept.response is None:
            raise BadRequest(409, "the request with this Idempotency-Key has not been answered yet")
        return _copy(kept.response)

    def _answered(self, name: bytes, response: HttpResponse) -> HttpResponse:
        kept = self._all.get(name)
        if kept is not None:
            passing = response.status in (408, 429) or response.status >= 500
            if passing or len(response.body) > _LARGEST:
                del self._all[name]  # it is tried again
            else:
                kept.response = _copy(response)
        return response

    def _forget(self, now: float) -> None:
        while self._all:
            name, oldest = next(iter(self._all.items()))
            if now - oldest.at_s <= _KEPT_S:
                return
            del self._all[name]


def _copy(response: HttpResponse) -> HttpResponse:
    found = HttpResponse(response.status, response.body)
    found.headers = list(response.headers)
    return found
