"""The last word to a peer that broke a rule: what it is told, and who is told nothing."""

from __future__ import annotations

from typing import Final

from tmqp.constants import TYPE_SERVER, TYPE_TERMINATE
from tmqp.errors import RemoteProtocolError
from tmqp.frames import Frame

__all__ = ["farewell"]

#: Violations that get no answer: the peer does not speak TMQP, has not been spoken to, or is gone.
_UNTOLD_RULES: Final = (
    "preamble",
    "unexpected-message",
    "torn",
    "handshake-timeout",
    "ping-timeout",
)


def farewell(error: RemoteProtocolError, in_handshake: bool) -> bytes:
    """The message that tells a peer why its connection ends; empty for one that is told nothing.

    :param in_handshake: a server has not accepted it: it waits for a refusal (F32, F43).
    """
    if error.rule in _UNTOLD_RULES:
        return b""
    return Frame.build(
        TYPE_SERVER if in_handshake else TYPE_TERMINATE,
        content_type=error.code,
        first_acquirer=in_handshake,
    ).raw
