"""Converts TMQP messages for programs that are called by HTTP, and their answers back.

The request's body is the payload.  The rest of the message is in header fields with a prefix of
their own, so that no message can set a field that HTTP or the called program understands (a length,
a host, a password).  Headers that cannot be fields of HTTP are left out.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import RESULT_LIMIT_EXCEEDED
from tmqp.frames import Frame
from tmqp_server.doors.native.answers import acknowledge_frame, response_frame
from tmqp_server.engine.commands import HttpMessage
from tmqp_server.engine.effects import AnswerRouted
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE

__all__ = ["MAX_HTTP_HEADERS", "http_answer", "http_message"]

#: Headers of a message that are sent to a program called by HTTP; further ones are dropped,
#: because many programs accept at most a hundred fields.
MAX_HTTP_HEADERS: Final = 64

_CONTENT_TYPE: Final = "content-type"
_BINARY: Final = "application/octet-stream"
#: The characters of a field's name besides letters and digits (RFC 9110, "token").
_TOKEN_MARKS: Final = frozenset("!#$%&'*+-.^_`|~")


def http_message(frame: Frame) -> HttpMessage:
    """The message as the fields and the body of an HTTP request.

    The fields: ``Content-Type`` (the message's own header of that name, if it has one),
    ``Tmqp-Message-Id``, ``Tmqp-Source``, ``Tmqp-Router``, ``Tmqp-Content-Type`` and, for each
    header of the message, ``Tmqp-Header-`` and its name.
    """
    kind = frame.header(_CONTENT_TYPE) or ""
    headers = [
        ("Content-Type", kind.strip() if kind.strip() and _is_value(kind.strip()) else _BINARY)
    ]
    for name, value in (
        ("Tmqp-Message-Id", frame.message_id),
        ("Tmqp-Source", frame.source),
        ("Tmqp-Router", frame.target),
        ("Tmqp-Content-Type", str(frame.content_type)),
    ):
        if value and _is_value(value):
            headers.append((name, value.strip()))
    for name, value in frame.headers[:MAX_HTTP_HEADERS]:
        if _is_token(name) and _is_value(value):
            headers.append((f"Tmqp-Header-{name}", value.strip()))
    return HttpMessage(headers, frame.payload)


def _is_token(name: str) -> bool:
    return all(
        character in _TOKEN_MARKS or (character.isascii() and character.isalnum())
        for character in name
    )


def _is_value(value: str) -> bool:
    """Whether a text has no control characters; other characters are sent as UTF-8."""
    return not any(character < " " or character == "\x7f" for character in value)


def http_answer(request: Frame, answer: AnswerRouted, client_id: str, most_bytes: int) -> Frame:
    """The called program's answer to the publisher, in the form that the binding asks for
    (F123)."""
    code = answer.code
    if answer.interaction == ASKS_ACKNOWLEDGE:
        return acknowledge_frame(request, code)
    body = answer.body
    if len(body) > most_bytes:
        # A client with the same limit as this server could not read a larger answer.
        code = RESULT_LIMIT_EXCEEDED
        body = b""
    return response_frame(request, code, client_id, body)
