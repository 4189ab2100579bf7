"""How the admin door answers: every answer tells a browser what it must not do with it."""

from __future__ import annotations

from typing import Final

from tmqp_server.doors.http.manner import Manner
from tmqp_server.doors.http.messages import Headers, HttpResponse

__all__ = ["POLICY", "AdminManner"]

#: Nothing but the console's own files is loaded, nothing inline runs, no text becomes markup, and
#: no other page may frame this one.
POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    b" form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    b" require-trusted-types-for 'script'; trusted-types 'none'"
)
#: On answers to everything, also to what does not exist: an error that shows a text of the request
#: is a page, too.  Strict-Transport-Security is not among them: it would bind every other port of
#: the host as well.
_GUARDS: Final = [
    (b"Content-Security-Policy", POLICY),
    (b"Referrer-Policy", b"no-referrer"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
]


class AdminManner(Manner):
    """Problems as RFC 9457 writes them, and the guards of a browser on each answer."""

    takes_last_slash = True

    def fields(self, response: HttpResponse, date: bytes) -> Headers:
        """The fields of an answer's head."""
        return super().fields(response, date) + _GUARDS
