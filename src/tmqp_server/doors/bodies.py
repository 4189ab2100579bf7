"""The stored form of messages, which can be read whether or not their door is open.

Protocols whose messages are a body and a place share a form (:class:`PlainBodies`).  The size of
such a message is that of its stored form, so it counts the same before and after a restart.  Others
store frames of TMQP (:class:`KeptFrames`).  Forms that few servers need are loaded with the first
message (:class:`LateBodies`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, final

from tmqp.codec import FrameDecoder
from tmqp.limits import Limits
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.names import foreign_name
from tmqp_server.doors.port import OwnBodies
from tmqp_server.engine.model.message import Message
from tmqp_wires.common import kept

__all__ = ["Bodies", "KeptFrames", "LateBodies", "PlainBodies", "bytes_around"]

#: Stored messages were accepted before, so the current limits do not apply.
_KEPT: Final = Limits(max_payload_bytes=1 << 40)


class Bodies(Protocol):
    """Writes and reads the stored form of a protocol's messages; its doors have the same
    methods."""

    name: str
    number: int

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """See ``Door.stored``."""

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """See ``Door.unpacked``."""

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """See ``Door.restored``."""

    def letter(self, wire: object) -> Letter:
        """See ``Door.letter``."""

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """See ``Door.with_headers``."""


class KeptFrames:
    """Reads messages that are kept as the bytes of a frame of TMQP."""

    def __init__(self) -> None:
        self._decoder = FrameDecoder(_KEPT)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """See ``Door.restored``.

        :raises ValueError: when the bytes are not one frame.
        """
        decoder = self._decoder
        frames = decoder.feed(body)
        if len(frames) != 1 or decoder.buffered or decoder.error is not None:
            self._decoder = FrameDecoder(_KEPT)
            raise ValueError(f"{len(body)} stored bytes are not exactly one message")
        frame = frames[0]
        return frame, frame.message_id, frame.source, frame.target, len(body)


def bytes_around(source: str, channel: str) -> int:
    """The bytes of a stored message besides its id and its body.

    :param channel: the channel that the message was sent to.
    """
    return kept.HEAD_BYTES + len(source.encode()) + len(foreign_name(channel))


class PlainBodies(OwnBodies):
    """Messages that are a body and a place, stored in the form of ``tmqp_wires.common.kept``."""

    def body_of(self, wire: object) -> bytes:
        """The body of a message."""
        raise NotImplementedError

    def channel_of(self, wire: object) -> str:
        """The channel that a message was sent to; feeds and dead letters do not change it."""
        raise NotImplementedError

    def wire_of(self, name: str, source: str, place: bytes, body: bytes) -> tuple[object, str]:
        """Rebuild a message's wire form; returns it and the channel's name as the producer wrote
        it.

        :param name: the message's id.
        """
        raise NotImplementedError

    def letter(self, wire: object) -> Letter:
        """The letter of a message: a body and nothing else."""
        return Letter(self.body_of(wire))

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """The stored form of a message; see ``Door.stored``."""
        head = kept.stored_head(
            message.message_id.encode(),
            message.source.encode(),
            foreign_name(self.channel_of(message.wire)),
        )
        body = self.body_of(message.wire)
        return head + body, len(head), len(body)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A message from its stored form; see ``Door.restored``.

        :raises ValueError: when it cannot be read.
        """
        found = kept.read(body)
        name = found.message_id.decode("utf-8", "replace")
        source = found.source.decode("utf-8", "replace")
        wire, channel = self.wire_of(name, source, found.place, found.body)
        return wire, name, source, channel, len(body)


@final
class LateBodies:
    """Creates the real bodies when the first message needs them.

    :param name: the protocol's.
    :param number: the protocol's.
    :param make: imports their code and creates them.
    """

    def __init__(self, name: str, number: int, make: Callable[[], Bodies]) -> None:
        self.name = name
        self.number = number
        self._make = make
        self._made: Bodies | None = None

    def _bodies(self) -> Bodies:
        if self._made is None:
            self._made = self._make()
        return self._made

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """See ``Door.stored``."""
        return self._bodies().stored(message)

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """See ``Door.unpacked``."""
        return self._bodies().unpacked(data)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """See ``Door.restored``."""
        return self._bodies().restored(body)

    def letter(self, wire: object) -> Letter:
        """See ``Door.letter``."""
        return self._bodies().letter(wire)

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """See ``Door.with_headers``."""
        return self._bodies().with_headers(wire, headers)
