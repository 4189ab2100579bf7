"""The fuzz target of STOMP."""

from __future__ import annotations

import itertools
from typing import Final

from targets.talking import cut, speak
from tmqp.testing import Seeded
from tmqp_server.doors.port import IdSource
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.options import StompLimits
from tmqp_wires.stomp import FrameDecoder, FrameLimits
from tmqp_wires.stomp.codec import OF_CLIENTS, OF_SERVERS
from tmqp_wires.stomp.frames import VERSIONS, encode_frame

__all__ = ["good_frames", "stomp"]

#: The longest head, and the longest body, which are held together.
_MOST: Final = 100


def stomp(data: bytes) -> None:
    """STOMP in every version and both roles, and hub, door and broker together: any bytes, cut in
    any way; no more is held than is allowed."""
    chunks, whole = cut(data)
    for version in VERSIONS:
        decoder, at_once = _decoder(version), _decoder(version)
        told: list[str] = []
        for chunk in chunks:
            told += [repr(event) for event in decoder.receive(chunk)]
            assert decoder.held_bytes <= 2 * _MOST, "something is kept beyond its limit"
        expected = [repr(event) for event in at_once.receive(whole)]
        assert told == expected, "how it is cut changes what it says"
    speak(StompDoor(_ids(), StompLimits(max_head_bytes=_MOST, max_body_bytes=_MOST)), chunks)


def _decoder(version: str) -> FrameDecoder:
    limits = FrameLimits(max_head_bytes=_MOST, max_body_bytes=_MOST)
    found = FrameDecoder(limits, OF_CLIENTS | OF_SERVERS)
    found.version = version
    return found


def _ids() -> IdSource:
    numbers = itertools.count(1)
    return lambda: f"{next(numbers):032x}"


def good_frames(draw: Seeded) -> bytes:
    """What a client says: CONNECT, then frames about two queues and a transaction."""
    version = VERSIONS[draw.below(3)]
    said = [encode_frame("CONNECT", [("accept-version", version)])]
    places = ("/queue/a", "/topic/a", "/temp-queue/a")
    for _ in range(draw.below(7)):
        place = ("destination", places[draw.below(3)])
        more = [("receipt", "1")] * draw.below(2) + [("transaction", "t")] * draw.below(2)
        body = draw.some_bytes(draw.below(110))
        number = ("id", str(draw.below(2)))
        choices = (
            ("SEND", [place, ("content-length", str(len(body))), *more], body),
            ("SUBSCRIBE", [place, number, ("ack", "client"), *more], b""),
            ("UNSUBSCRIBE", [number, *more], b""),
            ("ACK", [("id", f"{1 + draw.below(2)}-1"), *more], b""),
            ("BEGIN", [("transaction", "t")], b""),
            ("COMMIT", [("transaction", "t")], b""),
            ("ABORT", [("transaction", "t")], b""),
        )
        command, headers, body = choices[draw.below(len(choices))]
        said.append(encode_frame(command, headers, body, version))
    return b"".join(said)
