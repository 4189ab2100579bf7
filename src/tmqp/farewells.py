"""The last message to a peer: a refusal, or the rule that it broke; some peers get none."""

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
    """Make the message that tells a peer why its connection ends; empty if the peer gets none.

    :param in_handshake: this side is a server that has not accepted the client, which expects a
        refusal (F32, F43).
    """
    if error.rule in _UNTOLD_RULES:
        return b""
    return Frame.build(
        TYPE_SERVER if in_handshake else TYPE_TERMINATE,
        content_type=error.code,
        first_acquirer=in_handshake,
    ).raw


def refusal(code: int, message_id: str, address: str) -> bytes:
    """Make the message that refuses a client (F32, F33).

    :param address: the address of the server that serves clients instead; empty if unknown.
    """
    return Frame.build(
        TYPE_SERVER,
        content_type=code,
        message_id=message_id,
        headers=[(HEADER_NODE_ADDRESS, address)] if address else [],
        first_acquirer=True,
    ).raw


def refused(frame: Frame) -> HandshakeRefused:
    """Make the event of a received refusal."""
    return HandshakeRefused(frame.content_type, frame.header(HEADER_NODE_ADDRESS) or "")
