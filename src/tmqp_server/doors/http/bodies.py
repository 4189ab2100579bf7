"""The stored form of messages that arrived over HTTP.

It needs neither h11 nor wsproto, because a server without an HTTP door still reads stored messages.
"""

from __future__ import annotations

from typing import Final, final

from tmqp.frames import Frame
from tmqp_server.doors.bodies import KeptFrames
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.letter_frames import letter_of_frame
from tmqp_server.doors.port import OwnBodies
from tmqp_server.engine.model.message import Message

__all__ = ["DOOR_NAME", "HttpBodies"]

#: The name of the door, and the type of its clients.
DOOR_NAME: Final = "http"


@final
class HttpBodies(OwnBodies):
    """Stores each message as the equivalent TMQP message."""

    name = DOOR_NAME
    number = 9

    def __init__(self) -> None:
        self._kept = KeptFrames()

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """See ``Door.stored``: the form is the TMQP message."""
        frame = message.wire
        assert isinstance(frame, Frame), "this door keeps what it made"
        size = frame.payload_size
        return frame.raw, len(frame.raw) - size, size

    def letter(self, wire: object) -> Letter:
        """The letter of the TMQP message."""
        assert isinstance(wire, Frame), "this door keeps what it made"
        return letter_of_frame(wire)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """See ``Door.restored``.

        :raises ValueError: when the bytes are not one message.
        """
        return self._kept.restored(body)
