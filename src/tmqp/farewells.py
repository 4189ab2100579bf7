"""The last word to a peer: that it is refused, or that it broke a rule, and who is told nothing."""

from __future__ import annotations

from typing import Final

from tmqp.constants import TYPE_SERVER, TYPE_TERMINATE
from tmqp.errors import RemoteProtocolError
from tmqp.events import HandshakeRefused
from tmqp.extensions import HEADER_NODE_ADDRESS
from tmqp.frames import Frame

__all__ = ["farewell", "refusal", "refused"]

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


def refusal(code: int, message_id: str, address: str) -> bytes:
    """The message that tells a client that it is not accepted (F32, F33).

    :param address: of the server that takes clients instead; empty if that is not known.
    """
    return Frame.build(
        TYPE_SERVER,
        content_type=code,
        message_id=message_id,
        headers=[(HEADER_NODE_ADDRESS, address)] if address else [],
        first_acquirer=True,
    ).raw


def refused(frame: Frame) -> HandshakeRefused:
    """What a refusal says to the client that gets it."""
    return HandshakeRefused(frame.content_type, frame.header(HEADER_NODE_ADDRESS) or "")
